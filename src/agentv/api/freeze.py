"""Freeze a stored run: write its conversation as a scripted case, with the calls that were made in each turn."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET, json, to_builtins

from agentv.api.convert.writer import write_eval
from agentv.api.runs import case_of, record_of, response_of
from agentv.errors import SpecError, StoreError
from agentv.model.conversation import may_have_gap
from agentv.model.request import Persona
from agentv.scoring.calls import resolve_calls
from agentv.scoring.turns import Exchange, split_turns
from agentv.spec.messages import FILE_PREFIX
from agentv.spec.project import find_project, load_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentv.model.conversation import Message, ToolCall
    from agentv.model.request import Case
    from agentv.model.results import ResultRecord
    from agentv.model.stored import StoredRun

NOT_COUNTED = ("denied", "pending")
"""Statuses of calls that `tool_trajectory` does not count."""
EXPECTED_MESSAGES = "expected_messages"


class FrozenCase(NamedTuple):
    """Eval with one scripted case, and notes for the person who edits it."""

    eval: dict[str, Any]
    notes: list[str]

    def to_yaml(self) -> str:
        """Return the eval as YAML, with the notes as comments before it."""
        return write_eval(self.eval, self.notes)


def freeze_run(run: StoredRun, folder: Path | None = None) -> FrozenCase:
    """Return a run as a scripted case that passes as it is; raise `StoreError` if too little of it was stored.

    `folder` is that of the file in which it will stand, by default the current one.
    """
    record, response = record_of(run), response_of(run)
    if record is None or response is None:
        msg = f"{run.run_id} was stored without its messages (persist: summary), or has no result: run it again"
        raise StoreError(msg)
    if not response.success:
        msg = f"{run.run_id} is an error ({record.error.message if record.error else 'unknown'}): freeze one that ended"
        raise StoreError(msg)
    case, configs = case_of(run)
    exchanges = split_turns(response) if response.turns else [_single_turn(case, response)]
    history = case.input_messages if response.turns else case.input_messages[:-1]
    notes = [
        f"Frozen from run {run.run_id}: the words of the user and the calls of the agent as they were.",
        "Edit it: remove arguments that may differ, and calls that do not matter.",
    ]
    if run.response is not None and may_have_gap(run.response):
        notes.append("Secrets were redacted in the stored run: [redacted] stands for them, and must be replaced.")
    kept, left_out = _kept_evaluators(configs, record)
    notes += [f"Left out, because it did not pass: {name}" for name in left_out]
    words = _Words(case.vars)
    frozen: dict[str, Any] = {"id": f"{case.id}-frozen"}
    if isinstance(case.persona, Persona):
        frozen["persona"] = case.persona.id
    conversation: dict[str, Any] = {"input": [words.message(message) for message in history]} if history else {}
    conversation["turns"] = [_scripted_turn(exchange, words) for exchange in exchanges]
    if case.expected_messages is not None and any(_type_of(config) == EXPECTED_MESSAGES for config in kept):
        conversation["expected_messages"] = [to_builtins(message) for message in case.expected_messages]
    frozen |= {"vars": words.variables} if words.variables else {}
    frozen |= conversation
    if kept:
        frozen["evaluators"] = kept
    return FrozenCase({**_target(run, folder or Path.cwd()), **_personas(case), "cases": [frozen]}, notes)


class _Words:
    """Texts of messages, with variables in place of those that would be read as templates or names of files."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self.variables = dict(variables)

    def message(self, message: Message) -> dict[str, Any]:
        """Return a message whose texts are read as they are."""
        fields: dict[str, Any] = to_builtins(message)
        content = fields.get("content")
        if isinstance(content, str):
            fields["content"] = self.text(content)
        elif isinstance(content, list):
            texts = [
                {"text": self.text(block["text"])} if isinstance(block.get("text"), str) else {} for block in content
            ]
            fields["content"] = [{**block, **text} for block, text in zip(content, texts, strict=True)]
        return fields

    def text(self, text: str) -> str:
        """Return a text that is read as this one."""
        if not text.startswith(FILE_PREFIX) and "{{" not in text:
            return text
        name = next(name for number in count(1) if (name := f"said_{number}") not in self.variables)
        self.variables[name] = text
        return f"{{{{ {name} }}}}"


def _type_of(config: Any) -> Any:
    return config.get("type") if isinstance(config, dict) else None


def _single_turn(case: Case, response: Any) -> Exchange:
    return Exchange(case.input_messages[-1:], response)


def _kept_evaluators(configs: list[Any], record: ResultRecord) -> tuple[list[Any], list[str]]:
    """Return the evaluators that passed, and the names of those that did not."""
    kept, left_out = [], []
    for config, result in zip(configs, record.evaluators, strict=False):
        is_of_turn = isinstance(config, dict) and isinstance(config.get("over"), dict)
        if is_of_turn and config["type"] in ("tool_trajectory", EXPECTED_MESSAGES):
            continue  # the calls of the turn replace it
        if result.status in ("pass", "skipped"):
            kept.append(config)
        else:
            left_out.append(result.name)
    return kept, left_out


def _scripted_turn(exchange: Exchange, words: _Words) -> dict[str, Any]:
    """Return a turn with the words of the user and, if the calls of the agent are known, a check that expects them."""
    turn: dict[str, Any] = {}
    if exchange.resume is not UNSET:
        turn["resume"] = exchange.resume
    elif exchange.user:
        message = exchange.user[-1]
        turn["user"] = words.text(message.content) if isinstance(message.content, str) else words.message(message)
    known = resolve_calls(exchange.response)
    if known.calls is not None and known.complete and known.source is not None:
        turn["evaluators"] = [expected_calls(known.calls)]
    return turn


def expected_calls(calls: Iterable[ToolCall]) -> dict[str, Any]:
    """Return the evaluator that expects these calls, in this order and no others."""
    made = [call for call in calls if call.effective_status not in NOT_COUNTED]
    return {"type": "tool_trajectory", "mode": "exact", "expected": [dict(_expected(call)) for call in made]}


def _expected(call: ToolCall) -> Iterator[tuple[str, Any]]:
    yield "tool", call.tool
    if call.input is not UNSET:
        value = to_builtins(call.input)
        yield "input", {"$literal": value} if _has_matcher(value) else value
    if call.status == "error":
        yield "status", "error"


def _has_matcher(value: Any) -> bool:
    """Return whether an input has a key that would be read as a matcher, such as `$ref`."""
    if isinstance(value, dict):
        return any(str(key).startswith("$") or _has_matcher(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_matcher, value))


def _target(run: StoredRun, folder: Path) -> dict[str, Any]:
    """Return the target of the case: its name if the project of the folder defines it, else its settings."""
    settings: Mapping[str, Any] = json.decode(run.target_settings)
    project = find_project(folder)
    if project is not None:
        try:
            if any(target.name == run.target for target in load_project(project).targets):
                return {"target": run.target}
        except SpecError:  # reported when the case is run
            return {"target": run.target}
    is_defined = settings.get("provider", "stored") != "stored"  # the replies of a stored run are no target
    return {"targets": [dict(settings)]} if is_defined else {"target": run.target}


def _personas(case: Case) -> dict[str, Any]:
    if not isinstance(case.persona, Persona):
        return {}
    return {"personas": [{key: value for key, value in to_builtins(case.persona).items() if value}]}
