"""Input of a case: a prompt with the variables of a test, as a template of ours where that gives the same text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.convert.promptfoo.prompts import PromptSource, read_messages
from agentv.api.convert.templates import RenderError, has_template, is_plain, render, render_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.api.convert.promptfoo.options import TestOptions

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
