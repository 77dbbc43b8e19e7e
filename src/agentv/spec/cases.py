"""Read one case: messages, files, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError, Problem, SpecError
from agentv.evals import CheckedCase, ConfiguredEvaluator, iter_evaluators
from agentv.files import read_below
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json
from agentv.matching.matchers import check_expected
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Case
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators, checks_anything, with_expected_messages
from agentv.spec.file_format import CaseEntry, DefaultsEntry
from agentv.spec.validation import (
    NOT_JSON,
    TOO_DEEP,
    as_json,
    build,
    is_too_deep,
    not_a_choice,
    not_json,
    shown,
    unknown_key,
)

if TYPE_CHECKING:
    from agentv.errors import Place
    from agentv.spec.targets import JudgeNames


FILE = "file://"
# Linear on any text: neither part can match what the next one begins with.
_NAME = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)[ \t]*\}\}")


class VariableFiller:
    """Puts the values of one case into its messages."""

    def __init__(self, root: str, folder: str, values: Mapping[str, Any], files: frozenset[str] | None = None) -> None:
        self._root = root
        self._folder = folder
        self._values = values
        self._files = files
        """Where alone something is replaced, in messages that were filled before."""
        self.problems: list[Problem] = []

    def fill(self, message: Message, path: str) -> Message:
        """The message with its files read and its names replaced."""
        content = message.content
        if isinstance(content, str):
            filled: Any = self._text(content, path)
        elif isinstance(content, list):
            filled = [
                {**block, "text": self._text(block["text"], f"{path}[{index}].text")}
                if isinstance(block.get("text"), str)
                else block
                for index, block in enumerate(content)
            ]
        else:
            return message
        return message if filled == content else replace(message, content=filled)

    def _text(self, text: str, path: str) -> str:
        if self._files is not None and path not in self._files:
            return text
        if text.startswith(FILE):
            text = self._file(text.removeprefix(FILE).strip(), path)
        # Without values there is nothing to replace, and braces are what the author wrote.
        if not self._values or "{{" not in text:
            return text
        return _NAME.sub(lambda found: self._value(found[1], found[0], path), text)

    def _file(self, name: str, path: str) -> str:
        try:
            return read_below(self._root, name, self._folder).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.problems.append(Problem(path, f"{name!r} is not UTF-8 text"))
        except FormatError as error:
            self.problems.append(Problem(path, str(error)))
        return ""

    def _value(self, name: str, written: str, path: str) -> str:
        value: Any = self._values
        for part in name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                self.problems.append(
                    Problem(path, f"{written} names no value of `vars`: {not_a_choice(name, list(self._values))}")
                )
                return written
            value = value[part]
        return value if isinstance(value, str) else dump_json(value).decode()


MESSAGE_KEYS = [*Message.__struct_fields__, "toolCalls", "toolCallId", "function_call"]
CALL_KEYS = [*ToolCall.__struct_fields__, "args", "durationMs"]
OPENAI_KEYS = ["id", "type", "function"]
LANGCHAIN_KEYS = ["name", "args", "id", "type"]
FUNCTION_KEYS = ["name", "arguments"]
CALLS = ("tool_calls", "toolCalls", "function_call")
"""Where the calls of a message may stand."""


def check_messages(data: Any, path: str, role: str = "user") -> tuple[Message, ...]:
    """The messages of a text, of one message or of a list of them, or a `SpecError`."""
    if isinstance(data, str):
        return (Message(role=role, content=data),)
    if isinstance(data, Mapping):
        data = [data if "role" in data else {"role": role, **data}]
    messages, problems = _read(data, path)
    if problems:
        raise SpecError(problems)
    return messages


def check_expected_messages(data: Sequence[Any] | None, path: str = "expected_messages") -> tuple[Message, ...] | None:
    """The messages, or a `SpecError`: what is forgiven in an agent's reply is a mistake in an expectation."""
    if data is None:
        return None
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise SpecError([Problem(path, "expected a list of messages")])
    messages, problems = _read(data, path)
    for index, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            place = f"{path}[{index}].tool_calls[{number}]"
            if not call.tool:
                problems.append(Problem(f"{place}.tool", "required: the name of the tool"))
            for part, value in (("input", call.input), ("output", call.output)):
                if value is not UNSET:
                    problems += check_expected(value, f"{place}.{part}")
    if problems:
        raise SpecError(problems)
    return messages


def _read(data: Sequence[Any], path: str) -> tuple[tuple[Message, ...], list[Problem]]:
    if all(isinstance(message, Message) for message in data):
        return tuple(data), []
    problems: list[Problem] = []
    if not any(isinstance(message, Message) for message in data):
        data = _own_copy(data, path)
    items = [
        item if isinstance(item, Message) else _with_canonical_keys(item, f"{path}[{index}]", problems)
        for index, item in enumerate(data)
    ]
    try:
        response = decode_response(items)
    except FormatError as error:
        raise SpecError([Problem(path, str(error))]) from error
    problems += [Problem("", warning.replace("output_messages", path, 1)) for warning in response.warnings]
    return response.output_messages or (), problems


def _own_copy(data: Sequence[Any], path: str) -> list[Any]:
    """The same as plain JSON, which shares nothing with objects that may change later."""
    try:
        text = msgspec.json.encode(list(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SpecError([not_json(error, path)]) from error
    if is_too_deep(text):
        raise SpecError([Problem(path, TOO_DEEP)])
    copy: list[Any] = msgspec.json.decode(text)
    return copy


def _with_canonical_keys(message: Any, path: str, problems: list[Problem]) -> Any:
    """The message with `args` under its proper name; a key that nobody reads is a problem, for it checks nothing."""
    if not isinstance(message, Mapping):
        return message
    problems += [
        Problem(f"{path}.{key}", unknown_key(key, Message.__struct_fields__), "key")
        for key in message
        if key not in MESSAGE_KEYS
    ]
    given = [key for key in CALLS if message.get(key)]
    problems += [
        Problem(f"{path}.{key}", f"{key!r} is another word for {given[0]!r}; give one of them", "key")
        for key in given[1:]
    ]
    _check_function(message.get("function_call"), f"{path}.function_call", problems)
    calls = message.get("tool_calls", message.get("toolCalls"))
    if not isinstance(calls, (list, tuple)) or not calls:
        return message
    if message.get("role") != "assistant":
        problems.append(Problem(f"{path}.role", f"tool calls belong to 'assistant'; got {shown(message.get('role'))}"))
    renamed = [_renamed_call(call, f"{path}.tool_calls[{index}]", problems) for index, call in enumerate(calls)]
    return {**{key: value for key, value in message.items() if key != "toolCalls"}, "tool_calls": renamed}


def _renamed_call(call: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(call, Mapping):
        return call
    keys = OPENAI_KEYS if "function" in call else LANGCHAIN_KEYS if "tool" not in call and "name" in call else CALL_KEYS
    problems += [Problem(f"{path}.{key}", unknown_key(key, keys), "key") for key in call if key not in keys]
    _check_function(call.get("function"), f"{path}.function", problems)
    if "tool" not in call or "args" not in call:
        return call
    if "input" in call:
        problems.append(Problem(f"{path}.args", "`args` is another word for `input`; give one of them"))
    return {**{key: value for key, value in call.items() if key != "args"}, "input": call["args"]}


def _check_function(function: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(function, Mapping):
        problems += [
            Problem(f"{path}.{key}", unknown_key(key, FUNCTION_KEYS), "key")
            for key in function
            if key not in FUNCTION_KEYS
        ]


NOT_A_REASON = {"", "y", "n", "yes", "no", "on", "off", "true", "false"}
"""What other YAML readers take for true or false; as a reason it would skip a case that was meant to run."""
CAMEL = {"inputMessages": "input_messages", "expectedMessages": "expected_messages"}
LISTS = {"input_messages": "input", "expected_messages": "expected"}
"""Where messages stand, and the short word for it."""


class CaseReader:
    """Reads the cases of one eval."""

    def __init__(
        self,
        defaults: DefaultsEntry,
        default_checks: list[ConfiguredEvaluator],
        *,
        root: str,
        folder: str,
        judges: JudgeNames | None = None,
    ) -> None:
        self._defaults = defaults
        self._default_checks = default_checks
        self._default_names = {name for checked in default_checks if (name := _name(checked))}
        self._root = root
        self._folder = folder
        self._judges = judges

    def read(
        self,
        text: bytes,
        index: int,
        place: Place | None = None,
        evaluators: list[Any] | None = None,
        files: frozenset[str] | None = None,
    ) -> tuple[CheckedCase | None, list[Problem]]:
        """The case that this JSON describes, its evaluators given apart if they are objects.

        Of a case that was filled before, only the texts at the paths `files` stand for something else. Problems have
        paths within the case.
        """
        if is_too_deep(text):
            return None, [Problem("", TOO_DEEP, "whole")]
        entry, problems = build(CaseEntry, text, "")
        if entry is None and problems[0].message.startswith(NOT_JSON):
            return None, problems
        if entry is None:
            text = _with_canonical_text(text)
            entry, problems = build(CaseEntry, text, "")
        if entry is None:
            return None, [*problems, *self._look_further(text, problems, evaluators)]
        if evaluators is not None:
            entry = replace(entry, evaluators=evaluators)
        case, checks, problems = self._make(entry, files)
        if problems or case is None:
            return None, problems
        return self._checked(entry, case, checks, index, place), []

    def _look_further(self, text: bytes, problems: list[Problem], evaluators: list[Any] | None) -> list[Problem]:
        """What else is wrong in a case that cannot be built: all of it is told in one pass."""
        data = msgspec.json.decode(text)
        if not isinstance(data, dict):
            return []
        wrong = {problem.path.partition(".")[0].partition("[")[0] for problem in problems}
        kept = {"id": "", **{key: value for key, value in data.items() if key not in wrong}}
        entry, _ = build(CaseEntry, msgspec.json.encode({**kept, "id": kept["id"] or "?"}), "")
        if entry is None:
            return _check_alone(evaluators or kept.get("evaluators"))
        _, _, further = self._make(replace(entry, evaluators=evaluators) if evaluators is not None else entry)
        # What is missing may be just what was misspelt.
        said = " ".join([*wrong, *(problem.message for problem in problems)])
        return [problem for problem in further if not (problem.about == "whole" and _explained(problem, said))]

    def _make(
        self, entry: CaseEntry, files: frozenset[str] | None = None
    ) -> tuple[Case | None, tuple[ConfiguredEvaluator, ...], list[Problem]]:
        problems: list[Problem] = []
        values = {**self._defaults.vars, **entry.vars} if self._defaults.vars else entry.vars
        filler = VariableFiller(self._root, self._folder, values, files)
        asked = self._messages(entry, "input_messages", filler, problems)
        golden = self._messages(entry, "expected_messages", filler, problems)
        if not asked and not problems:
            problems.append(Problem("", f"case {entry.id!r} asks nothing: add `input`", "whole"))
        if isinstance(entry.skip, str) and entry.skip.strip().lower() in NOT_A_REASON:
            problems.append(Problem("skip", f"expected true, false, or a reason in words; got {entry.skip!r}"))
        checks = self._checks(entry, golden, problems)
        problems += filler.problems
        if problems:
            return None, (), problems
        case = Case(
            id=str(entry.id),
            input_messages=asked or (),
            expected_messages=golden,
            vars=values,
            tags=(*self._defaults.tags, *entry.tags),
            threshold=self._defaults.threshold if entry.threshold is None else entry.threshold,
            metadata=entry.metadata,
        )
        return case, checks, []

    def _messages(
        self, entry: CaseEntry, name: str, filler: VariableFiller, problems: list[Problem]
    ) -> tuple[Message, ...] | None:
        short = LISTS[name]
        long_form, short_form = getattr(entry, name), getattr(entry, short)
        if long_form is not UNSET and short_form is not UNSET:
            problems.append(Problem(short, f"{short!r} is another word for {name!r}; give one of them", "key"))
            return None
        written = short if long_form is UNSET else name
        data = short_form if long_form is UNSET else long_form
        if data is UNSET:
            return None
        try:
            if name == "input_messages":
                messages = check_messages(data, written)
                return tuple([filler.fill(message, _content(written, data, at)) for at, message in enumerate(messages)])
            messages = check_messages(data, written, "assistant") if isinstance(data, (str, dict)) else ()
            return check_expected_messages(messages or data, written)
        except SpecError as error:
            problems += error.problems
            return None

    def _checks(
        self, entry: CaseEntry, golden: tuple[Message, ...] | None, problems: list[Problem]
    ) -> tuple[ConfiguredEvaluator, ...]:
        has_calls = any(message.tool_calls for message in golden or () if message.role == "assistant")
        try:
            own = check_evaluators(entry.evaluators) if entry.evaluators else []
            if own and self._judges is not None:
                problems += self._judges.check(own, "evaluators")
            names = {_name(checked) for checked in own} & self._default_names if own else ()
            checks = [checked for checked in self._default_checks if not names or _name(checked) not in names] + own
            if has_calls or any(checked.evaluator.type == "expected_messages" for checked in iter_evaluators(checks)):
                checks = with_expected_messages(checks, golden)
            nothing = not can_fail(checks)
        except SpecError as error:
            nothing = not has_calls and not self._default_checks and _check_nothing(entry.evaluators, error.problems)
            problems += error.problems
            checks = []
        if nothing:
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_CHECKED}", "whole"))
        return tuple(checks)

    def _checked(
        self, entry: CaseEntry, case: Case, checks: tuple[ConfiguredEvaluator, ...], index: int, place: Place | None
    ) -> CheckedCase:
        return CheckedCase(
            case=case,
            checks=checks,
            index=index,
            repeat=entry.repeat or self._defaults.repeat or 1,
            skip=entry.skip,
            only=entry.only,
            place=place,
            warnings=tuple([warning for checked in checks for warning in checked.warnings]),
        )


def case_text(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """A case of plain data as JSON text."""
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with an `id` and an `input`, got {shown(data)}")]
    return as_json(dict(data), path)


def _explained(problem: Problem, said: str) -> bool:
    """Whether a case asks or checks nothing only because of what was said already."""
    return "input" in said if "asks nothing" in problem.message else "evaluators" in said or "expected" in said


def _check_alone(configs: Any) -> list[Problem]:
    """What is wrong with the evaluators of a case that cannot be built for other reasons."""
    if not isinstance(configs, list):
        return []
    try:
        check_evaluators(configs)
    except SpecError as error:
        return list(error.problems)
    return []


def _check_nothing(configs: list[Any], problems: Sequence[Problem]) -> bool:
    """Whether nothing would be checked even if all that is wrong were left out."""
    places = [f"evaluators[{index}]" for index in range(len(configs))]
    return not any(
        checks_anything(config, [problem for problem in problems if problem.path.startswith(place)], place)
        for config, place in zip(configs, places, strict=True)
    )


def _name(checked: ConfiguredEvaluator) -> str | None:
    name: str | None = getattr(checked.evaluator, "name", None)
    return name


def _content(path: str, data: Any, index: int) -> str:
    if isinstance(data, str):
        return path
    return f"{path}.content" if isinstance(data, dict) else f"{path}[{index}].content"


def _with_canonical_text(text: bytes) -> bytes:
    """The same with camelCase field names of the contract in snake_case."""
    data = msgspec.json.decode(text)
    if not isinstance(data, dict) or CAMEL.keys().isdisjoint(data):
        return text
    # Where both spellings are given, the odd one stays and is refused: neither may silently win.
    names = {key: name for key, name in CAMEL.items() if name not in data}
    return msgspec.json.encode({names.get(key, key): value for key, value in data.items()})
