"""One case of an eval: messages, `file://` texts, `{{ variable }}` values, and evaluators."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError, Problem, SpecError
from agentv.evals import CheckedCase, ConfiguredEvaluator, iter_evaluators
from agentv.files import read_in_root
from agentv.formats.reader import decode_response
from agentv.matching.matchers import check_expected
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Case
from agentv.spec.evaluators import (
    CASE_NEVER_FAILS,
    NOTHING_CHECKED,
    can_fail,
    check_evaluators,
    with_expected_messages,
)
from agentv.spec.file_format import CaseEntry, DefaultsEntry
from agentv.spec.validation import (
    NOT_JSON,
    TOO_DEEP,
    build,
    choice_message,
    is_too_deep,
    not_json_problem,
    short_repr,
    to_json,
    unknown_key_message,
)
from agentv.templating import MISSING, Template, lookup

if TYPE_CHECKING:
    from agentv.errors import Location
    from agentv.spec.targets import JudgeNames


FILE_PREFIX = "file://"
_VARIABLE_NAME = re.compile(r"[ \t]*[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*[ \t]*")


class VariableFiller:
    """Fills the variables and files of one case into its messages."""

    def __init__(self, root: str, folder: str, values: Mapping[str, Any], files: frozenset[str] | None = None) -> None:
        self._root = root
        self._folder = folder
        self._values = values
        self._files = files
        """The only paths to fill, if the other texts come from columns of a dataset."""
        self.problems: list[Problem] = []

    def fill(self, message: Message, path: str) -> Message:
        """Return the message with `file://` texts read and variables filled."""
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
        if text.startswith(FILE_PREFIX):
            text = self._file(text.removeprefix(FILE_PREFIX).strip(), path)
        # Without variables, braces are plain text.
        if not self._values or "{{" not in text:
            return text
        return _TEMPLATE.compile_text(text, path)(self)

    def _file(self, name: str, path: str) -> str:
        try:
            return read_in_root(self._root, name, self._folder).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.problems.append(Problem(path, f"{name!r} is not UTF-8 text"))
        except FormatError as error:
            self.problems.append(Problem(path, str(error)))
        return ""

    def value(self, name: str, path: str) -> Any:
        """Return the value of a variable; one that does not exist is a problem."""
        value = lookup(self._values, name)
        if value is MISSING:
            choices = choice_message(name, list(self._values))
            self.problems.append(Problem(path, f"{{{{ {name} }}}} names no value of `vars`: {choices}"))
            return ""
        return value


_TEMPLATE = Template(VariableFiller.value, is_name=lambda name: bool(_VARIABLE_NAME.fullmatch(name)))


MESSAGE_KEYS = [*Message.__struct_fields__, "toolCalls", "toolCallId", "function_call"]
CALL_KEYS = [*ToolCall.__struct_fields__, "args", "durationMs"]
OPENAI_KEYS = ["id", "type", "function"]
LANGCHAIN_KEYS = ["name", "args", "id", "type"]
FUNCTION_KEYS = ["name", "arguments"]
CALL_FIELDS = ("tool_calls", "toolCalls", "function_call")
"""Fields of a message that may contain tool calls."""


def check_messages(data: Any, path: str, role: str = "user") -> tuple[Message, ...]:
    """Return the messages of a text, a message or a list of messages, or raise `SpecError`."""
    if isinstance(data, str):
        return (Message(role=role, content=data),)
    if isinstance(data, Mapping):
        data = [data if "role" in data else {"role": role, **data}]
    messages, problems = _decode_messages(data, path)
    if problems:
        raise SpecError(problems)
    return messages


def check_expected_messages(data: Sequence[Any] | None, path: str = "expected_messages") -> tuple[Message, ...] | None:
    """Return the expected messages, or raise `SpecError`; stricter than for the reply of an agent."""
    if data is None:
        return None
    if isinstance(data, (str, bytes)) or not isinstance(data, Sequence):
        raise SpecError([Problem(path, "expected a list of messages")])
    messages, problems = _decode_messages(data, path)
    for index, message in enumerate(() if problems else messages):
        for number, call in enumerate(message.tool_calls):
            call_path = f"{path}[{index}].tool_calls[{number}]"
            if not call.tool:
                problems.append(Problem(f"{call_path}.tool", "required: the name of the tool"))
            for part, value in (("input", call.input), ("output", call.output)):
                if value is not UNSET:
                    problems += check_expected(value, f"{call_path}.{part}")
    if problems:
        raise SpecError(problems)
    return messages


def _decode_messages(data: Sequence[Any], path: str) -> tuple[tuple[Message, ...], list[Problem]]:
    if all(isinstance(message, Message) for message in data):
        return tuple(data), []
    problems: list[Problem] = []
    if not any(isinstance(message, Message) for message in data):
        data = _copy_as_json(data, path)
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


def _copy_as_json(data: Sequence[Any], path: str) -> list[Any]:
    """Copy messages as plain JSON data, since the objects may change later."""
    try:
        text = msgspec.json.encode(list(data))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SpecError([not_json_problem(error, path)]) from error
    if is_too_deep(text):
        raise SpecError([Problem(path, TOO_DEEP)])
    copy: list[Any] = msgspec.json.decode(text)
    return copy


def _with_canonical_keys(message: Any, path: str, problems: list[Problem]) -> Any:
    """Return the message with `args` renamed to `input`; an unknown key is a problem, since it would check nothing."""
    if not isinstance(message, Mapping):
        return message
    problems += [
        Problem(f"{path}.{key}", unknown_key_message(key, Message.__struct_fields__), "key")
        for key in message
        if key not in MESSAGE_KEYS
    ]
    fields = [key for key in CALL_FIELDS if message.get(key)]
    problems += [
        Problem(f"{path}.{key}", f"{key!r} is another word for {fields[0]!r}; give one of them", "key")
        for key in fields[1:]
    ]
    _check_function(message.get("function_call"), f"{path}.function_call", problems)
    calls = message.get("tool_calls", message.get("toolCalls"))
    if not isinstance(calls, (list, tuple)) or not calls:
        return message
    if message.get("role") != "assistant":
        problems.append(
            Problem(f"{path}.role", f"tool calls belong to 'assistant'; got {short_repr(message.get('role'))}")
        )
    renamed = [_with_canonical_call(call, f"{path}.tool_calls[{index}]", problems) for index, call in enumerate(calls)]
    return {**{key: value for key, value in message.items() if key != "toolCalls"}, "tool_calls": renamed}


def _with_canonical_call(call: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(call, Mapping):
        return call
    keys = OPENAI_KEYS if "function" in call else LANGCHAIN_KEYS if "tool" not in call and "name" in call else CALL_KEYS
    problems += [Problem(f"{path}.{key}", unknown_key_message(key, keys), "key") for key in call if key not in keys]
    _check_function(call.get("function"), f"{path}.function", problems)
    if "tool" not in call or "args" not in call:
        return call
    if "input" in call:
        problems.append(Problem(f"{path}.args", "`args` is another word for `input`; give one of them"))
    return {**{key: value for key, value in call.items() if key != "args"}, "input": call["args"]}


def _check_function(function: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(function, Mapping):
        problems += [
            Problem(f"{path}.{key}", unknown_key_message(key, FUNCTION_KEYS), "key")
            for key in function
            if key not in FUNCTION_KEYS
        ]


NOTHING_ASKED = "asks nothing: add `input`"
_TOOL_NAME = re.compile(r"[^\s,;!?]+")
NOT_A_REASON = {"", "y", "n", "yes", "no", "on", "off", "true", "false"}
"""Texts that other YAML parsers read as true or false; as a reason they would skip a case that should run."""
CAMEL_CASE = {"inputMessages": "input_messages", "expectedMessages": "expected_messages"}
MESSAGE_FIELDS = {"input_messages": "input", "expected_messages": "expected"}
"""Fields of messages, and their short names."""


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
        self._default_names = {name for checked in default_checks if (name := checked.evaluator.name)}
        self._root = root
        self._folder = folder
        self._judges = judges

    @property
    def has_checks(self) -> bool:
        """`True` if there are evaluators for every case."""
        return bool(self._default_checks)

    def read(
        self,
        text: bytes,
        index: int,
        location: Location | None = None,
        evaluators: list[Any] | None = None,
        files: frozenset[str] | None = None,
    ) -> tuple[CheckedCase | None, list[Problem]]:
        """Build the case of this JSON; return it, or its problems with paths within the case.

        `evaluators` are given separately if they are objects. With `files`, only the texts at these paths are filled.
        """
        if is_too_deep(text):
            return None, [Problem("", TOO_DEEP, "whole")]
        entry, problems = build(CaseEntry, text, "")
        if entry is None and problems[0].message.startswith(NOT_JSON):
            return None, problems
        if entry is None:
            text = _with_snake_case(text)
            entry, problems = build(CaseEntry, text, "")
        if entry is None:
            return None, [*problems, *self._find_more_problems(text, problems, evaluators)]
        if evaluators is not None:
            entry = replace(entry, evaluators=evaluators)
        case, checks, problems = self._make(entry, files)
        if problems or case is None:
            return None, problems
        warnings = [warning for checked in checks for warning in checked.warnings]
        if entry.threshold == 0 and not any(checked.evaluator.required for checked in checks):
            warnings.append(f"threshold: {CASE_NEVER_FAILS}")
        return CheckedCase(
            case=case,
            checks=checks,
            index=index,
            repeat=entry.repeat or self._defaults.repeat or 1,
            skip=entry.skip,
            only=entry.only,
            location=location,
            warnings=tuple(warnings),
        ), []

    def _find_more_problems(self, text: bytes, problems: list[Problem], evaluators: list[Any] | None) -> list[Problem]:
        """Return the other problems of a case that cannot be built, so that all are reported in one pass."""
        data = msgspec.json.decode(text)
        if not isinstance(data, dict):
            return []
        invalid_keys = {problem.path.partition(".")[0].partition("[")[0] for problem in problems}
        valid = {"id": "", **{key: value for key, value in data.items() if key not in invalid_keys}}
        entry, _ = build(CaseEntry, msgspec.json.encode({**valid, "id": valid["id"] or "?"}), "")
        if entry is None:
            return _check_evaluators_only(evaluators or valid.get("evaluators"))
        _, _, more = self._make(replace(entry, evaluators=evaluators) if evaluators is not None else entry)
        # A missing field may be the one that was misspelt.
        messages = " ".join([*invalid_keys, *(problem.message for problem in problems)])
        return [problem for problem in more if not (problem.about == "whole" and _is_explained(problem, messages))]

    def _make(
        self, entry: CaseEntry, files: frozenset[str] | None = None
    ) -> tuple[Case | None, tuple[ConfiguredEvaluator, ...], list[Problem]]:
        problems: list[Problem] = []
        values = {**self._defaults.vars, **entry.vars} if self._defaults.vars else entry.vars
        filler = VariableFiller(self._root, self._folder, values, files)
        input_messages = self._messages(entry, "input_messages", filler, problems)
        expected = self._messages(entry, "expected_messages", filler, problems)
        if not input_messages and not problems:
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_ASKED}", "whole"))
        if isinstance(entry.skip, str) and entry.skip.strip().lower() in NOT_A_REASON:
            problems.append(Problem("skip", f"expected true, false, or a reason in words; got {entry.skip!r}"))
        checks = self._checks(entry, expected, problems)
        problems += filler.problems
        if problems:
            return None, (), problems
        case = Case(
            id=str(entry.id),
            input_messages=input_messages or (),
            expected_messages=expected,
            vars=values,
            tags=(*self._defaults.tags, *entry.tags),
            threshold=self._defaults.threshold if entry.threshold is None else entry.threshold,
            metadata=entry.metadata,
        )
        return case, checks, []

    def _messages(
        self, entry: CaseEntry, name: str, filler: VariableFiller, problems: list[Problem]
    ) -> tuple[Message, ...] | None:
        short = MESSAGE_FIELDS[name]
        long_form, short_form = getattr(entry, name), getattr(entry, short)
        if long_form is not UNSET and short_form is not UNSET:
            problems.append(Problem(short, f"{short!r} is another word for {name!r}; give one of them", "key"))
            return None
        path = short if long_form is UNSET else name
        data = short_form if long_form is UNSET else long_form
        if data is UNSET:
            return None
        try:
            if name == "input_messages":
                messages = check_messages(data, path)
                paths = [_content_path(path, data, index) for index in range(len(messages))]
                return tuple(map(filler.fill, messages, paths))
            messages = check_messages(data, path, "assistant") if isinstance(data, (str, dict)) else ()
            return check_expected_messages(messages or _named_calls(data, path), path)
        except SpecError as error:
            problems += error.problems
            return None

    def _checks(
        self, entry: CaseEntry, expected: tuple[Message, ...] | None, problems: list[Problem]
    ) -> tuple[ConfiguredEvaluator, ...]:
        has_calls = any(message.tool_calls for message in expected or () if message.role == "assistant")
        try:
            own = check_evaluators(entry.evaluators) if entry.evaluators else []
            if own and self._judges is not None:
                problems += self._judges.check(own, "evaluators")
            names = {checked.evaluator.name for checked in own} & self._default_names if own else ()
            kept = [item for item in self._default_checks if not names or item.evaluator.name not in names]
            checks = kept + own
            if has_calls or any(checked.evaluator.type == "expected_messages" for checked in iter_evaluators(checks)):
                checks = with_expected_messages(checks, expected)
            is_empty = not can_fail(checks)
        except SpecError as error:
            is_empty = False  # what is wrong with them comes first
            problems += error.problems
            checks = []
        written = not (entry.expected is UNSET and entry.expected_messages is UNSET)
        if is_empty and not (written and expected is None):  # invalid ones are reported already
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_CHECKED}", "whole"))
        return tuple(checks)


def _named_calls(data: Any, path: str) -> Any:
    """Return a list of names of tools as one message with these calls; any other data as it is."""
    if not isinstance(data, list) or not data or not all(isinstance(name, str) for name in data):
        return data
    for index, name in enumerate(data):
        if not _TOOL_NAME.fullmatch(name):
            message = f"{short_repr(name)} is no name of a tool; for an expected answer write one text, not a list"
            raise SpecError([Problem(f"{path}[{index}]", message)])
    return [{"role": "assistant", "tool_calls": [{"tool": name} for name in data]}]


def encode_case(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """Encode the data of a case as JSON, or return its problems."""
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with an `id` and an `input`, got {short_repr(data)}")]
    return to_json(dict(data), path)


def _is_explained(problem: Problem, messages: str) -> bool:
    """Tell whether a missing input or evaluator follows from the problems in these messages."""
    if "asks nothing" in problem.message:
        return "input" in messages
    return "evaluators" in messages or "expected" in messages


def _check_evaluators_only(configs: Any) -> list[Problem]:
    """Return the problems of the evaluators of a case that cannot be built."""
    if not isinstance(configs, list):
        return []
    try:
        check_evaluators(configs)
    except SpecError as error:
        return list(error.problems)
    return []


def _content_path(path: str, data: Any, index: int) -> str:
    if isinstance(data, str):
        return path
    return f"{path}.content" if isinstance(data, dict) else f"{path}[{index}].content"


def _with_snake_case(text: bytes) -> bytes:
    """Return the JSON of a case with camelCase names of messages in snake_case."""
    data = msgspec.json.decode(text)
    if not isinstance(data, dict) or CAMEL_CASE.keys().isdisjoint(data):
        return text
    # If both spellings are given, camelCase stays and is rejected, so that neither silently wins.
    names = {key: name for key, name in CAMEL_CASE.items() if name not in data}
    return msgspec.json.encode({names.get(key, key): value for key, value in data.items()})
