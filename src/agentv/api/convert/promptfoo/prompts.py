"""promptfoo's prompts: texts, chat messages and files of them, and the input of a case that one gives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.files import PREFIX, SCRIPTS, find_files, read_json_lines, read_rows, read_text
from agentv.api.convert.templates import RenderError, has_template, is_plain, render, render_deep
from agentv.spec.yaml import YamlError, read_yaml

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.options import TestOptions
    from agentv.api.convert.source import Place

_SEPARATOR = re.compile(r"(?m)^---\s*$")
_FILE_SUFFIXES = (".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".j2", *SCRIPTS)
_ROLES = ("system", "user", "assistant", "developer", "tool", "function")


class PromptSource(Struct, frozen=True):
    """One prompt: a template of a text or of chat messages."""

    place: Place
    text: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    """Chat messages, instead of a text."""
    label: str = ""
    identifier: str = ""
    reason: str = ""
    """The reason why it cannot be used, if it cannot."""
    is_passed_on: bool = False
    """True for the one prompt of a configuration without prompts: it is the variable `prompt`."""

    def is_named(self, name: str) -> bool:
        """Return whether a test or a provider means this prompt; a name may end with `*`, and groups end with `:`."""
        own = [value for value in (self.label, self.identifier, self.text) if value]
        if name.endswith("*"):
            return any(value.startswith(name[:-1]) for value in own)
        return name in own or any(value.startswith(f"{name}:") for value in own)


def read_prompts(entries: Any, place: Place) -> list[PromptSource]:
    """Return all prompts of a configuration."""
    if entries is None:
        return [PromptSource(place, text="{{prompt}}", is_passed_on=True)]
    if isinstance(entries, Mapping) and not any(key in entries for key in ("raw", "id", "label")):
        # An old form: files, and their labels.
        items: list[Any] = [{"id": key, "label": value} for key, value in entries.items()]
    else:
        items = entries if isinstance(entries, list) else [entries]
    prompts: list[PromptSource] = []
    for at, entry in enumerate(items):
        prompts += _read(entry, place.at(at) if isinstance(entries, list) else place)
    return prompts or [PromptSource(place, text="{{prompt}}", is_passed_on=True)]


def _read(entry: Any, place: Place) -> list[PromptSource]:
    label = identifier = ""
    if isinstance(entry, list):
        return [_from_data(entry, place, "", "")]
    if isinstance(entry, Mapping):
        label = str(entry.get("label") or "")
        identifier = str(entry.get("id") or "")
        for key in entry:
            if key not in {"id", "label", "raw", "display", "prompt"}:
                place.at(key).leave_out(f"prompts.{key}", "settings of a prompt belong into a target")
        raw = entry.get("raw", entry.get("prompt"))
        entry = identifier if raw is None else raw
        if isinstance(entry, list):
            return [_from_data(entry, place, label, identifier)]
    if not isinstance(entry, str):
        place.leave_out("prompt", "it is no text")
        return [PromptSource(place, reason="the prompt is no text")]
    if entry.startswith(PREFIX) or (entry.endswith(_FILE_SUFFIXES) and " " not in entry and "\n" not in entry):
        return _read_files(entry, place, label, identifier)
    if entry.startswith(("exec:", "langfuse://", "portkey://", "helicone://")):
        place.leave_out("prompt", f"it is made by {entry.partition(':')[0]}")
        return [PromptSource(place, label=label, reason=f"the prompt is made by {entry.partition(':')[0]}")]
    return [_from_text(entry, place, label, identifier)]


def _read_files(entry: str, place: Place, label: str, identifier: str) -> list[PromptSource]:
    name = entry.removeprefix(PREFIX)
    base, _, function = name.partition(":")
    if Path(base).suffix in SCRIPTS or (function and Path(base).suffix not in _FILE_SUFFIXES):
        place.leave_out("prompt", f"it is made by a function in {base}")
        return [PromptSource(place, label=label or name, identifier=identifier, reason=f"the prompt is made by {name}")]
    try:
        files = find_files(base, place.document.folder)
        return [prompt for path in files for prompt in _read_file(path, place, label, identifier)]
    except UntranslatableError as error:
        place.leave_out("prompt", str(error))
        return [PromptSource(place, label=label or name, identifier=identifier, reason=str(error))]


def _read_file(path: Path, place: Place, label: str, identifier: str) -> list[PromptSource]:
    suffix = path.suffix.lower()
    if suffix in {".js", ".ts", ".py", ".mjs", ".cjs"}:
        msg = f"the prompt is made by a function in {path.name}"
        raise UntranslatableError(msg)
    if suffix == ".jsonl":
        rows = read_json_lines(path)
        return [_from_data(row, place, label or f"{path.name}:{line}", identifier) for line, row in rows]
    if suffix == ".csv":
        cells = read_rows(path)
        return [
            _from_text(row.get("prompt") or next(iter(row.values()), ""), place, row.get("label") or label, identifier)
            for _, row in cells
        ]
    text = read_text(path)
    if suffix in {".json", ".yaml", ".yml", ".md"}:
        return [_from_text(text.strip(), place, label or path.name, identifier)]
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    return [_from_text(part, place, label or path.name, identifier) for part in parts if part]


def _from_text(text: str, place: Place, label: str, identifier: str) -> PromptSource:
    messages = read_messages(text)
    if messages is not None:
        return PromptSource(place, messages=tuple(messages), label=label, identifier=identifier)
    return PromptSource(place, text=text, label=label, identifier=identifier)


def _from_data(data: Any, place: Place, label: str, identifier: str) -> PromptSource:
    messages = as_messages(data)
    if messages is not None:
        return PromptSource(place, messages=tuple(messages), label=label, identifier=identifier)
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=2)
    return PromptSource(place, text=text, label=label, identifier=identifier)


def read_messages(text: str) -> list[dict[str, Any]] | None:
    """Return the chat messages that a prompt holds as JSON or YAML; `None` for other texts."""
    start = text.lstrip()
    if start.startswith(("[", "{")):
        try:
            return as_messages(json.loads(text))
        except (ValueError, RecursionError):
            return None
    if start.startswith("- role:"):
        try:
            return as_messages(read_yaml(text.encode()).data)
        except (YamlError, UnicodeEncodeError):
            return None
    return None


def as_messages(data: Any) -> list[dict[str, Any]] | None:
    """Return data as chat messages, if it is a list of them."""
    if isinstance(data, Mapping) and isinstance(data.get("messages"), list):
        data = data["messages"]
    if not isinstance(data, list) or not data:
        return None
    if not all(isinstance(item, Mapping) and item.get("role") in _ROLES for item in data):
        return None
    if not all(_is_content(item.get("content")) and set(item) <= {"role", "content", "name"} for item in data):
        return None
    return [{**item, "role": "system" if item["role"] == "developer" else item["role"]} for item in data]


def _is_content(content: Any) -> bool:
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(block, Mapping) and block.get("type") in {"text", "image_url", "input_text"} for block in content
    )


_PROMPT = "prompt"


class CaseInput(Struct, frozen=True):
    """The input of a case, and the variables it is filled with."""

    written: Any
    """Value of `input` in the file: a text or messages, perhaps with `{{ name }}`."""
    values: Mapping[str, Any]
    """Variables with templates in them rendered."""
    case_vars: Mapping[str, Any]
    """Variables that the case has in the file."""
    rendered: str
    """The text that promptfoo sends."""
    problem: str = ""
    """The reason why the prompt cannot be made here."""


def resolve_vars(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables with those that they name filled in; raise `RenderError`."""
    return {key: render(value, values) if isinstance(value, str) else value for key, value in values.items()}


def refuse_nul(values: Mapping[str, Any]) -> None:
    """Raise `RenderError` if a variable holds a NUL character, which an eval file cannot."""
    for name, value in values.items():
        if "\\x00" in repr(value):
            msg = f"{name!r} holds a NUL character"
            raise RenderError(msg)


def make_input(prompt: PromptSource, values: Mapping[str, Any], options: TestOptions) -> CaseInput:
    """Return the input for a prompt and the variables of a test."""
    if prompt.reason:
        return CaseInput(f"({prompt.reason})", values, values, "", prompt.reason)
    try:
        known = resolve_vars(values)
        refuse_nul(known)
    except RenderError as error:
        kept = {key: value for key, value in values.items() if "\\x00" not in repr(value)}
        written = prompt.text if is_plain(prompt.text, kept) and prompt.text else f"(a variable: {error})"
        return CaseInput(written, values, kept, "", f"a variable: {error}")
    try:
        if prompt.messages:
            return _messages(prompt.messages, known)
        return _text(f"{options.prefix}{prompt.text}{options.suffix}", known)
    except RenderError as error:
        return CaseInput(f"({error})", known, known, "", str(error))


def _text(text: str, values: Mapping[str, Any]) -> CaseInput:
    rendered = render(text, values)
    messages = read_messages(rendered)
    if messages is not None:
        return CaseInput(messages, values, {} if has_template(messages) else values, rendered)
    if not rendered.strip():
        return CaseInput("(empty)", values, values, rendered, "the prompt is empty")
    if is_plain(text, values) and not _names_a_file(text):
        return CaseInput(text, values, values, rendered)
    if ("{{" in rendered and values) or _names_a_file(rendered):
        # The text holds braces of its own: as the value of a variable they stay as they are.
        return CaseInput(f"{{{{ {_PROMPT} }}}}", values, {**values, _PROMPT: rendered}, rendered)
    return CaseInput(rendered, values, values, rendered)


def _names_a_file(text: str) -> bool:
    return text.startswith("file://")


def _messages(messages: tuple[dict[str, Any], ...], values: Mapping[str, Any]) -> CaseInput:
    rendered = render_deep(list(messages), values)
    text = json.dumps(rendered, ensure_ascii=False)
    contents = [message["content"] for message in messages]
    if all(isinstance(content, str) and is_plain(content, values) for content in contents):
        return CaseInput(list(messages), values, values, text)
    if has_template(rendered) and values:
        msg = "its messages hold braces of their own"
        raise RenderError(msg)
    return CaseInput(rendered, values, values, text)
