"""Messages that the `langgraph` provider collects from updates, task results and states of every shape."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.formats import langgraph_updates
from agentv.formats.langgraph_updates import UpdateCollector
from agentv.jsonio import dump_json
from tests.support.examples import examples

DEEP = ("sub:1", "inner:2")
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
CALL = {"name": "delete", "args": {"x": 1}, "id": "c1", "type": "tool_call"}


def ai(content: Any, own_id: str | None = None, **fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "tool_calls": []}
    return {"type": "ai", "content": content, "id": own_id, **empty, **fields}


def human(content: str, own_id: str | None = None) -> dict[str, Any]:
    return {**ai(content, own_id), "type": "human"}


def said(gathered: UpdateCollector) -> list[str]:
    return [message.text for message in gathered.response().output_messages or ()]


def gather(*updates: Any, known: tuple[str, ...] = ()) -> UpdateCollector:
    """Return the messages of these updates; a pair has its namespace first."""
    gathered = UpdateCollector("messages", known)
    for update in updates:
        gathered.take_update(*update if isinstance(update, tuple) else (update,))
    return gathered


def by(node: str, *messages: Any) -> dict[str, Any]:
    return {node: {"messages": list(messages)}}


def test_a_whole_state_holds_each_message_once_also_without_ids() -> None:
    gathered = gather(by("a", ai("one"), ai("one")), (by("b", ai("two")), ("sub:1",)))
    gathered.take_state({"messages": [ai("one"), ai("one"), ai("two"), ai("three")]})
    assert said(gathered) == ["one", "one", "two", "three"]


def test_messages_under_a_key_of_its_own_are_read_and_other_values_of_subgraphs_are_searched() -> None:
    call = {"name": "search", "args": {"q": 1}, "id": "s1"}
    response = gather(({"research": {"notes": [ai("", tool_calls=[call])]}}, ("sub:1",))).response()
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["search"]
    unknown = {"research": {"messages": [ai("ok")], "log": {"tool_calls": [{"name": "delete", "args": {"q": 1}}]}}}
    (place,) = gather((unknown, ("sub:1",))).response().unread
    assert "sub.log" in place.path


def test_calls_that_a_graph_waits_for_are_pending() -> None:
    call = {"name": "refund", "args": {"amount": 9}, "id": "r1"}
    waiting = gather(by("model", ai("", tool_calls=[call])), {"__interrupt__": [{"value": "may I?", "id": "i1"}]})
    ((pending,),) = [message.tool_calls for message in waiting.response().output_messages or ()]
    assert pending.status == "pending"


def test_messages_that_were_there_before_are_no_output() -> None:
    assert said(gather(by("a", human("hi", "in"), ai("yes", "1")), known=("in",))) == ["yes"]


def test_a_message_that_is_sent_again_takes_the_place_of_the_first_and_is_paid_for_once() -> None:
    gathered = gather(
        by("a", ai("draft", "1", usage_metadata=USAGE)),
        by("b", ai("more", "2", usage_metadata=USAGE)),
        by("c", ai("final", "1", usage_metadata=USAGE)),
    )
    assert said(gathered) == ["final", "more"]
    usage = gathered.response().tokens_usage
    assert usage is not None
    assert usage.total_tokens == 30


def test_a_node_that_sends_the_whole_state_adds_only_what_is_new() -> None:
    gathered = gather(by("a", ai("one")), by("b", human("hi", "in"), ai("one", "id-1"), ai("two", "2")), known=("in",))
    assert said(gathered) == ["one", "two"]
    assert [message.id for message in gathered.response().output_messages or ()] == ["id-1", "2"]


def test_what_a_subgraph_said_without_an_id_is_known_again_when_the_graph_around_it_says_it() -> None:
    inner = by("inner", ai("found it"))
    assert said(gather((inner, ("sub:1",)), by("sub", ai("found it", "9")))) == ["found it"]
    assert said(gather((inner, ("sub:1",)), by("sub", ai("found it")))) == ["found it"]
    assert said(
        gather((inner, DEEP), (by("inner", ai("found it", "9")), DEEP[:1]), by("sub", ai("found it", "9")))
    ) == ["found it"]


def test_a_pair_and_a_message_in_openai_s_form_are_known_again_in_langchain_s() -> None:
    again = by("sub", human("hi", "in"), ai("one", "1"), ai("two", "2"))
    inner = {"inner": {"messages": [["ai", "one"], {"role": "assistant", "content": "two"}]}}
    assert said(gather((inner, ("sub:1",)), again, known=("in",))) == ["one", "two"]


def test_two_messages_with_the_same_words_are_two() -> None:
    assert said(gather(by("a", ai("working")), by("b", ai("working", "2")), by("a", ai("working")))) == ["working"] * 3
    assert said(gather((by("a", ai("ok")), ("one:1",)), (by("a", ai("ok", "2")), ("two:2",)))) == ["ok", "ok"]
    assert said(gather(by("a", ai("ok", "1"), ai("ok", "2")))) == ["ok", "ok"]


@pytest.mark.parametrize(
    "written",
    [
        {"messages": [ai("hi")]},
        {"messages": ai("hi")},
        {"messages": [["ai", "hi"]]},
        {"messages": ["assistant", "hi"]},
        {"messages": [{"role": "assistant", "content": "hi"}]},
        {"messages": {"type": "__overwrite__", "value": [ai("hi")]}},
        {"messages": [{"type": "ai", "data": {"content": "hi"}}]},
        [{"messages": [ai("hi")]}],
        [None, {"other": 1}, {"messages": [ai("hi")]}],
        [ai("hi")],
        ai("hi"),
    ],
)
def test_a_node_may_write_in_any_form(written: Any) -> None:
    response = gather({"node": written}).response()
    assert [(message.role, message.text) for message in response.output_messages or ()] == [("assistant", "hi")]
    assert response.text == "hi"


@pytest.mark.parametrize(
    "update", [None, [], 7, {"a": None}, {"a": 7}, {"a": {}}, {"a": {"messages": None}}, {"__metadata__": {"x": 1}}]
)
def test_a_node_that_writes_nothing_says_nothing(update: Any) -> None:
    response = gather(update).response()
    assert response.output_messages is None
    assert response.metadata is None


def test_a_bare_text_is_the_user_s() -> None:
    response = gather({"a": {"messages": "hi"}}).response()
    assert [message.role for message in response.output_messages or ()] == ["user"]
    assert response.text == ""


def test_the_answer_is_the_graph_s_own_last_word_and_not_a_subgraph_s() -> None:
    gathered = gather((by("worker", ai("result", "1"), ai("scratch", "2")), ("sub:1",)), by("sub", ai("result", "1")))
    assert said(gathered) == ["result", "scratch"]
    assert gathered.response().text == "result"
    assert gather((by("worker", ai("alone", "1")), ("sub:1",))).response().text == "alone"


def test_what_is_taken_back_was_said_but_is_not_the_answer() -> None:
    gathered = gather(by("a", ai("good", "1")), by("a", ai("bad", "2")), by("guard", {"type": "remove", "id": "2"}))
    response = gathered.response()
    assert [(message.role, message.text) for message in response.output_messages or ()] == [
        ("assistant", "good"),
        ("assistant", "bad"),
        ("remove", ""),
    ]
    assert response.text == "good"


def test_a_summary_that_replaces_the_conversation_keeps_what_it_keeps() -> None:
    everything = {"type": "remove", "id": "__remove_all__", "content": ""}
    gathered = gather(
        by("a", ai("old", "1"), ai("kept", "2")), by("sum", everything, human("so far", "s"), ai("kept", "2"))
    )
    assert said(gathered) == ["old", "kept", "", "so far"]
    assert gathered.response().text == "kept"


@pytest.mark.parametrize(
    "update",
    [
        (by("trim", {"type": "remove", "id": "__remove_all__", "content": ""}), ("sub:1",)),
        (by("trim", {"type": "remove", "id": "1", "content": ""}), ("sub:1",)),
        {"trim": {"notes": [{"type": "remove", "id": "__remove_all__", "content": ""}]}},
    ],
)
def test_what_is_removed_elsewhere_is_still_the_graph_s_own_answer(update: Any) -> None:
    gathered = gather(by("say", ai("the answer", "1")), (by("worker", ai("scratch", "2")), ("sub:1",)), update)
    assert gathered.response().text == "the answer"


def test_messages_tell_their_node_and_subgraph() -> None:
    response = gather((by("inner", ai("hi", "1")), DEEP), by("sub", ai("hi", "1"), ai("bye", "2"))).response()
    first, second = response.output_messages or ()
    assert first.metadata == {"langgraph_node": "inner", "langgraph_subgraph": "sub/inner"}
    assert second.metadata == {"langgraph_node": "sub"}


def test_questions_of_a_subgraph_are_asked_once() -> None:
    question = {"value": "may I?", "id": "q1"}
    gathered = gather(
        ({"__interrupt__": [question]}, ("sub:1",)), {"__interrupt__": [question, {"value": 2, "id": "q2"}]}
    )
    assert gathered.interrupts == [question, {"value": 2, "id": "q2"}]
    assert gather({"__interrupt__": []}).interrupts == []
    assert gather(by("a", ai("hi"))).interrupts is None


def test_the_rest_of_the_state_is_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(langgraph_updates, "MAX_STATE_BYTES", 50)
    response = gather(
        {"a": {"plan": "x" * 100, "score": 1}}, {"b": {"score": 2}}, ({"c": {"inner": 3}}, DEEP)
    ).response()
    assert response.metadata == {"state": {"score": 2}}
    assert response.warnings == ("metadata.state.plan: left out, it takes 102 bytes",)


def task(node: str, **result: Any) -> dict[str, Any]:
    return {"id": "t1", "name": node, "error": None, "result": result, "interrupts": []}


def test_what_a_subgraph_s_update_leaves_out_is_taken_from_the_result_of_its_task() -> None:
    gathered = gather(({"worker": None}, ("sub:1",)))
    gathered.take_task({"id": "t1", "name": "worker", "input": {"messages": [human("hi")]}}, ("sub:1",))
    gathered.take_task(task("worker", messages=[ai("", "1", tool_calls=[CALL])]), ("sub:1",))
    (message,) = gathered.response().output_messages or ()
    assert [call.tool for call in message.tool_calls] == ["delete"]
    assert message.metadata == {"langgraph_node": "worker", "langgraph_subgraph": "sub"}


@pytest.mark.parametrize(
    "result",
    [
        {"messages": [ai("hi")], "notes": {"$writes": [[ai("one")], [ai("two")]]}},
        [["messages", [ai("hi")]], ["notes", [ai("one")]], ["notes", [ai("two")]]],
    ],
)
def test_of_a_task_s_result_only_what_its_update_did_not_hold_is_new(result: Any) -> None:
    gathered = gather((by("worker", ai("hi")), ("sub:1",)))
    gathered.take_task({"name": "worker", "result": result}, ("sub:1",))
    assert said(gathered) == ["hi", "one", "two"]


def test_the_results_of_the_graph_s_own_tasks_are_its_updates() -> None:
    gathered = gather(by("worker", ai("hi")))
    gathered.take_task(task("worker", messages=[ai("hi")]), ())
    assert said(gathered) == ["hi"]


@pytest.mark.parametrize("namespace", [(), ("sub:1",)])
def test_messages_under_another_key_are_read_once_and_are_not_the_answer(namespace: tuple[str, ...]) -> None:
    notes = [human("look", "in"), ai("", "n1", tool_calls=[CALL]), ai("found", "n2")]
    gathered = gather(
        ({"worker": {"notes": notes}}, namespace),
        ({"worker": {"notes": notes, "messages": [ai("found", "n2")]}}, namespace),
        by("say", ai("done", "9")),
        ({"worker": {"notes": [ai("later", "n3")]}}, namespace),
        known=("in",),
    )
    response = gathered.response()
    assert said(gathered) == ["", "found", "done", "later"]
    assert response.text == "done"
    assert response.unread == ()


def test_a_value_of_a_subgraph_that_looks_like_a_call_is_unread() -> None:
    response = gather(({"worker": {"plan": {"tool": "delete", "args": {"x": 1}}, "n": 3}}, ("sub:1",))).response()
    assert [place.path for place in response.unread] == ["subgraphs.sub.plan"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["ai", "remove", "__remove_all__"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "content", "type", "role", "id", "__interrupt__", "value", "data", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None, max_examples=examples(120))
@given(st.lists(st.tuples(JSON, st.sampled_from([(), ("sub:1",), DEEP])), max_size=4), JSON)
def test_no_update_breaks_it_or_is_changed_by_it(updates: list[tuple[Any, Any]], state: Any) -> None:
    before = deepcopy((updates, state))
    gathered = gather(*updates)
    gathered.take_task(state, ("sub:1",))
    gathered.take_task({"name": "a", "result": state}, DEEP)
    gathered.take_state(state)
    dump_json(gathered.response("a"))
    assert (updates, state) == before


@pytest.mark.parametrize(
    ("updates", "text"),
    [
        ([{"task": 7}, {"flow": "It rains."}], "It rains."),
        ([{"task": "not yet"}, {"flow": {"answer": "It rains."}}], ""),
        ([{"task": "not yet"}, {"flow": None}], ""),
        ([{"task": "not yet"}, {"flow": {"messages": [{"type": "ai", "content": "It rains."}]}}], "It rains."),
    ],
)
def test_of_a_function_and_its_tasks_the_function_s_own_result_counts(updates: list[Any], text: str) -> None:
    gathered = UpdateCollector("messages")
    for update in updates:
        gathered.take_update(update)
    assert gathered.response().text == text
