"""Sessions that are converted and read again are the same, in every form."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

import agentv
from agentv.api.sessions.convert import FORMS, ConvertForm, convert_session
from agentv.formats.usage import add_usage
from agentv.model.conversation import Message, Status, TokensUsage, ToolCall
from agentv.model.response import ProviderResponse, ResponseError, Unread
from agentv.model.session import Session
from tests.support.examples import examples
from tests.support.trace_files import ALL
from tests.support.traces import OTLP, read_one, read_traces, write_lines

FORBIDS = [{"type": "tool_trajectory", "forbidden": ["*"]}]
STATUSES: tuple[Status, ...] = ("ok", "error", "denied", "pending")
LOSSLESS: tuple[ConvertForm, ...] = ("compact", "openai", "adk")
text = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
numbers = st.integers(-(2**40), 2**40) | st.booleans() | st.sampled_from([0.5, 1.0, -2.25])
values = st.recursive(
    st.none() | numbers | text | st.sampled_from(["", '{"a": 1}', "[1]", '"x"', "null", "3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
outputs = st.just(UNSET) | values.filter(lambda value: value is not None)
inputs = st.just(UNSET) | st.dictionaries(text, values, max_size=3)


@st.composite
def tool_calls(draw: st.DrawFn, number: int) -> ToolCall:
    status: Status = draw(st.sampled_from(STATUSES))
    output = draw(outputs)
    return ToolCall(
        tool=draw(st.sampled_from(["get", "put", "delete all", "größe"])),
        input=draw(inputs),
        output=UNSET if status in ("denied", "pending") else output,
        id=f"call-{number}",
        status=status,
        error=draw(text) if status == "error" else None,
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Sessions with any number of turns, calls and results, and with places that were not understood."""
    messages: list[Message] = [Message(role="system", content=draw(text))] if draw(st.booleans()) else []
    number = 0
    has_usage = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message(role="user", content=draw(text)))
        for is_last in [False] * draw(st.integers(0, 3)) + [True]:
            made = [] if is_last else [draw(tool_calls(number + at)) for at in range(draw(st.integers(1, 3)))]
            number += len(made)
            usage = TokensUsage(input_tokens=draw(st.integers(0, 99)), output_tokens=3) if has_usage else None
            usage = add_usage([usage])
            content = draw(text) if is_last or draw(st.booleans()) else None
            messages.append(Message(role="assistant", content=content, tool_calls=tuple(made), tokens_usage=usage))
    first = next(at for at, message in enumerate(messages) if message.role == "assistant")
    unread = draw(st.lists(st.builds(Unread, path=text.map("span {}".format), reason=text), max_size=2))
    failed = draw(st.booleans())
    return Session(
        id=draw(text),
        format="otlp",
        place="file:1",
        input_messages=tuple(messages[:first]),
        response=ProviderResponse(
            text=messages[-1].text,
            output_messages=tuple(messages[first:]),
            tokens_usage=add_usage([each.tokens_usage for each in messages[first:] if each.role == "assistant"]),
            cost_usd=draw(st.none() | st.sampled_from([0.25, 3.0])),
            unread=tuple(unread),
            success=not failed,
            error=ResponseError(kind="agent", message=draw(text)) if failed else None,
        ),
        agent=draw(st.none() | text),
        model=draw(st.none() | text),
        metadata=draw(st.none() | st.just({"user.id": "u"})),
    )


def again(session: Session, form: ConvertForm, folder: Path) -> Session:
    path = folder / "converted.jsonl"
    path.write_bytes(convert_session(session, form) + b"\n")
    return read_one(path)


def content(session: Session) -> Any:
    """Return all that spans can tell of a session: times, and what they leave open, are not part of it."""
    response = session.response
    return (
        session.id,
        session.turns,
        [said_of(each) for each in session.messages],
        response.text.strip(),
        response.tokens_usage,
        response.cost_usd,
        sorted(set(map(str, response.unread))),
        None if response.error is None else response.error.message,
    )


def said_of(message: Message) -> Any:
    return message.role, message.text.strip(), message.tokens_usage, *map(call_of, message.tool_calls)


def call_of(call: ToolCall) -> Any:
    return call.tool, repr(call.input), repr(call.output), call.id, call.effective_status, call.error


@pytest.mark.parametrize("form", LOSSLESS)
@given(session=sessions())
@settings(max_examples=examples(200))
def test_lines_of_sessions_are_read_as_they_were_written(form: ConvertForm, session: Session) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read = again(session, form, Path(folder))
        assert replace(read, place=session.place) == session
        assert repr(read.messages) == repr(session.messages)


@given(session=sessions())
@settings(max_examples=examples(300))
def test_spans_of_sessions_tell_the_same_calls_messages_and_gaps(session: Session) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert content(again(session, "otlp", Path(folder))) == content(session)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ALL)
def test_sessions_of_every_format_are_converted_and_read_again(name: str, form: ConvertForm, tmp_path: Path) -> None:
    for session in read_traces(write_lines(tmp_path / "s1.jsonl", ALL[name]()))[0]:
        read = again(session, form, tmp_path)
        if form == "otlp":
            assert content(read) == content(session)
        else:
            assert read == session


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", OTLP, ids=lambda path: path.name.partition(".")[0])
def test_sessions_of_real_emitters_are_converted_and_read_again(path: Path, form: ConvertForm, tmp_path: Path) -> None:
    for session in read_traces(path)[0]:
        read = again(session, form, tmp_path)
        assert content(read) == content(session)
        assert form == "otlp" or read == session


@pytest.mark.parametrize("form", ["openai", "adk"])
def test_other_tools_find_the_calls_without_our_field(form: ConvertForm, tmp_path: Path) -> None:
    for session in read_traces(OTLP[0])[0]:
        line = json.loads(convert_session(session, form))
        del line["agentv"]
        read = read_one(write_lines(tmp_path / "plain.jsonl", [line]))
        assert [call_of(call)[:2] for each in read.messages for call in each.tool_calls] == [
            call_of(call)[:2] for each in session.messages for call in each.tool_calls
        ]


@pytest.mark.parametrize("form", FORMS)
def test_a_check_that_forbids_calls_does_not_pass_after_a_conversion(form: ConvertForm, tmp_path: Path) -> None:
    place = Unread(path="span 1", reason="the reply was lost, so calls may be missing")
    said = (Message(role="assistant", content="hi"),)
    asked = (Message(role="user", content="hello"),)
    for response in (
        ProviderResponse(text="hi", output_messages=said, unread=(place,)),
        ProviderResponse(text="hi"),
    ):
        session = Session(id="s", format="x", place="f", input_messages=asked, response=response)
        assert agentv.score(again(session, form, tmp_path).response, FORBIDS).status != "pass"


@pytest.mark.parametrize(
    "change",
    [{"form": "xml"}, {"prompt": 99}, {"prompt": None}, {"rest": {"99": {}}}, {"rest": 3}, {"response": "x"}],
    ids=str,
)
def test_a_damaged_line_is_reported(change: dict[str, Any], tmp_path: Path) -> None:
    session = read_traces(OTLP[0])[0][0]
    line = json.loads(convert_session(session, "openai"))
    line["agentv"] |= change
    found, coverage = read_traces(write_lines(tmp_path / "damaged.jsonl", [line]))
    assert not found
    assert coverage.skipped_records == 1
