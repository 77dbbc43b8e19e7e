"""promptfoo's conversations: simulated users, and tests that go on from the answers to earlier ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from agentv.api.convert.base import Ids, UntranslatableError, as_mapping, counts, is_share, slug
from agentv.api.convert.files import find_file, is_file, read_structured
from agentv.api.convert.promptfoo.prompts import CaseInput, PromptSource, read_messages, resolve_vars
from agentv.api.convert.templates import RenderError, render, render_deep
from agentv.api.convert.writer import Commented, Remark

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.options import TestOptions
    from agentv.api.convert.source import Place

SIMULATED_USER = "promptfoo:simulated-user"
USER = "simulated-user"
"""Target that writes the messages of simulated users."""
HOSTED = "a model that promptfoo hosts plays the user: name a model of your own"
MAX_TURNS = 10
_HISTORY = "_conversation"
_IN_TEXT = "its prompt holds the answers to earlier tests in another form than as messages of a chat"
_SCENARIO = re.compile(r"scenarios\[\d+\]")


def read_simulated_user(test: Mapping[str, Any], default: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the settings of the simulated user of a test, if it has one."""
    provider = test.get("provider", default.get("provider"))
    identifier = provider.get("id") if isinstance(provider, Mapping) else provider
    if identifier != SIMULATED_USER:
        return None
    return as_mapping(provider.get("config")) if isinstance(provider, Mapping) else {}


def add_simulated_user(entry: dict[Any, Any], made: CaseInput, config: Mapping[str, Any], place: Place) -> None:
    """Replace the input of a case by a conversation with a simulated user; raise `UntranslatableError`."""
    for key in config:
        if key not in {"instructions", "maxTurns", "initialMessages"}:
            reason = "`conversation: thread` of a target says so" if key == "stateful" else "it has no counterpart"
            place.leave_out(f"{SIMULATED_USER}.{key}", reason)
    try:
        goal = render(str(config.get("instructions") or "{{instructions}}"), made.values).strip()
        history = _initial_messages(made.values.get("initialMessages") or config.get("initialMessages"), made, place)
    except RenderError as error:
        raise UntranslatableError(str(error)) from error
    if not goal:
        msg = "the simulated user has no instructions"
        raise UntranslatableError(msg)
    turns = config.get("maxTurns")
    turns = turns if type(turns) is int and turns >= 1 else MAX_TURNS
    simulate: dict[str, Any] = {"user": "model", "target": USER, "goal": goal}
    if history and history[-1]["role"] == "user":
        simulate["opening"], turns = history.pop()["content"], turns + 1
    simulate["stop"] = {"max_turns": turns}
    prompt = made.written if isinstance(made.written, str) else made.rendered
    entry["input"] = [{"role": "system", "content": prompt}, *history]
    entry["vars"] = {key: value for key, value in as_mapping(entry.get("vars")).items() if key != "initialMessages"}
    if "{{ instructions }}" not in prompt and "{{instructions}}" not in prompt:
        entry["vars"].pop("instructions", None)
    if not entry["vars"]:
        del entry["vars"]
    entry["simulate"] = simulate


def _initial_messages(written: Any, made: CaseInput, place: Place) -> list[dict[str, Any]]:
    if is_file(written):
        written = read_structured(find_file(str(written), place.document.folder))
    elif isinstance(written, str) and written.strip():
        try:
            written = json.loads(written)
        except ValueError:
            written = [written]
    messages = render_deep(written, made.values) if isinstance(written, list) else []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), str) or "role" not in message:
            msg = "`initialMessages` holds something else than messages"
            raise UntranslatableError(msg)
    return [{"role": str(message["role"]), "content": message["content"]} for message in messages]


class TurnSource(Struct, frozen=True):
    """One test of a conversation: what the user says, and the messages before the first turn."""

    user: str
    before: list[dict[str, Any]]


def uses_history(prompt: PromptSource) -> bool:
    """Return whether a prompt holds the answers to earlier tests."""
    return _HISTORY in prompt.text or any(_HISTORY in str(message) for message in prompt.messages)


def read_turn(prompt: PromptSource, values: Mapping[str, Any], options: TestOptions) -> TurnSource:
    """Return a test as a turn; raise `UntranslatableError` if its prompt is no chat with the earlier turns in it."""
    try:
        known = resolve_vars({key: value for key, value in values.items() if key != _HISTORY})
        rendered = [_render(prompt, known, options, length) for length in range(3)]
    except RenderError as error:
        raise UntranslatableError(str(error)) from error
    first = rendered[0]
    if not first or first[-1]["role"] != "user" or not isinstance(first[-1]["content"], str):
        raise UntranslatableError(_IN_TEXT)
    for length, messages in enumerate(rendered):
        pairs = [message for number in range(length) for message in _pair(number)]
        if messages != [*first[:-1], *pairs, first[-1]]:
            raise UntranslatableError(_IN_TEXT)
    return TurnSource(first[-1]["content"], first[:-1])


def _pair(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"question-{number}"},
        {"role": "assistant", "content": f"answer-{number}"},
    ]


def _render(
    prompt: PromptSource, values: Mapping[str, Any], options: TestOptions, length: int
) -> list[dict[str, Any]] | None:
    history = [
        {"input": f"question-{number}", "output": f"answer-{number}", "prompt": f"question-{number}"}
        for number in range(length)
    ]
    given = {**values, _HISTORY: history}
    if prompt.messages:
        return [dict(message) for message in render_deep(list(prompt.messages), given)]
    return read_messages(render(f"{options.prefix}{prompt.text}{options.suffix}", given))


class Conversations(Struct):
    """Cases that are conversations of several tests, by their ids in the source."""

    ids: Ids
    cases: dict[tuple[str, str], dict[Any, Any]] = field(default_factory=dict)

    def add(
        self, test: Mapping[str, Any], place: Place, turn: TurnSource, evaluators: list[Any]
    ) -> dict[Any, Any] | None:
        """Add a turn to the conversation of its test; return the case if it is new."""
        metadata = dict(as_mapping(test.get("metadata")))
        name = str(metadata.pop("conversationId", ""))
        scenario = _SCENARIO.match(place.path)
        key = (name, scenario[0] if scenario else "")
        case = self.cases.get(key)
        if case is not None and case.get("input", []) != turn.before:
            msg = "the messages before the first turn differ in the tests of this conversation"
            raise UntranslatableError(msg)
        if metadata:
            place.at("metadata").leave_out("metadata", "a turn of a conversation has no metadata")
        if test.get("options") and as_mapping(test["options"]).get("repeat"):
            place.at("options").leave_out("options.repeat", "a turn of a conversation cannot be repeated alone")
        entry: dict[Any, Any] = {"user": turn.user}
        remarks = [item for item in evaluators if isinstance(item, Remark)]
        if len(remarks) < len(evaluators):
            entry["evaluators"] = _graded(evaluators, test.get("threshold"))
        else:
            entry.update(dict.fromkeys(remarks))
        above, behind = place.document.comments(place.path, ("assert",))
        description = test.get("description")
        if isinstance(description, str) and description.strip():
            above = (description, *above)
        written = Commented(entry, above, behind) if above or behind else entry
        if case is not None:
            case["turns"].append(written)
            return None
        self.cases[key] = {"id": self.ids.take(slug(name) or "conversation")}
        if turn.before:
            self.cases[key]["input"] = turn.before
        self.cases[key]["turns"] = [written]
        return self.cases[key]

    def finish(self, reason: str) -> None:
        """Skip the conversations in which nothing is checked."""
        for case in self.cases.values():
            turns = [turn.value if isinstance(turn, Commented) else turn for turn in case["turns"]]
            if not any(counts(item) for turn in turns for item in turn.get("evaluators", ())):
                case["skip"] = reason


def _graded(evaluators: list[Any], threshold: Any) -> list[Any]:
    """Return the evaluators of a turn, which pass by their weighted mean if the test has a threshold."""
    if not is_share(threshold):
        return evaluators
    return [{"type": "all_of", "threshold": threshold, "evaluators": evaluators}]
