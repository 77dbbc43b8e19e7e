"""Texts of OpenAI Evals: prompts, references and inputs of graders, with placeholders of a row and its sample."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.templates import KeptName, RenderError, has_template, is_plain, js_text, names_in, render_deep
from agentv.api.convert.writer import Remark

OUTPUT = re.compile(r"\{\{\s*sample\.output_text\s*\}\}")
OUTPUT_JSON = re.compile(r"\{\{\s*sample\.output_json((?:\.\w+|\[\d+\])*)\s*\}\}")
_OUTPUT_TOOL = re.compile(
    r"\{\{\s*sample\.output_tools\[(\d+)\]\.function\.(name|arguments)((?:\.\w+|\[\d+\])*)\s*\}\}"
)
SAMPLE = re.compile(r"\{\{\s*sample\b")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def read_messages(written: Mapping[str, Any]) -> list[dict[str, Any]] | str | None:
    """Return the messages of a run, or the placeholder of the part of a row that holds them."""
    if written.get("type") == "item_reference":
        name = str(written.get("item_reference") or "")
        return f"{{{{ {name} }}}}" if name else None
    template = written.get("template")
    if not isinstance(template, list):
        return None
    messages: list[dict[str, Any]] = []
    for message in template:
        content = text_of(message.get("content") if isinstance(message, Mapping) else None)
        if content is None:
            return None
        role = str(message.get("role") or "user")
        messages.append({"role": "system" if role == "developer" else role, "content": content})
    return messages or None


def prompt_remarks(template: Any) -> dict[Any, Any]:
    """Return the prompt as comments, for a case that cannot have it as its input."""
    messages = template if isinstance(template, list) else []
    return {Remark(f"the prompt, {message['role']}: {message['content']}"): None for message in messages}


def text_of(content: Any) -> str | None:
    """Return the text of a message, or of its parts; `None` if it has parts that are no texts."""
    if isinstance(content, list):
        parts = [text_of(part) for part in content]
        return None if None in parts else "\n".join(map(str, parts))
    if isinstance(content, Mapping):
        content = content.get("text") if content.get("type", "text") in {"text", "input_text", "output_text"} else None
    return content if isinstance(content, str) else None


def make_input(template: Any, item: Any) -> Any:
    """Return the input of a row: the prompt with its values filled in."""
    if template is None:
        own = item.get("input", item.get("messages")) if isinstance(item, Mapping) else None
        return own if isinstance(own, (str, list)) and own and not has_template(own) else None
    if isinstance(template, str):
        found: Any = {"item": item}
        for key in template.strip("{} ").split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, (str, list)) and found and not has_template(found) else None
    try:
        messages = render_deep(template, {"item": item})
    except RenderError:
        return None
    if has_template(messages):
        return None
    contents = [message["content"] for message in template]
    if any((names_in(text) is not None) != is_plain(text, {"item": item}) for text in contents):
        return None  # the row lacks a value
    written = template if all(names_in(text) is not None for text in contents) else messages
    only = len(messages) == 1 and messages[0]["role"] == "user"
    return written[0]["content"] if only else written


def fill(value: Any, item: Any) -> Any:
    """Return a text with the values of a row filled in; without a row, its placeholders stay."""
    if item is None or not has_template(value):
        return value
    try:
        return render_deep(value, {"item": item, "sample": KeptName("sample")})
    except RenderError as error:
        raise UntranslatableError(str(error)) from error


def reference_text(value: Any) -> str:
    """Return the reference of a grader; raise `UntranslatableError` for one that is no text of its own."""
    if isinstance(value, (str, int, float)) and value != "":
        if SAMPLE.search(str(value)):
            msg = "its reference is a part of the sample"
            raise UntranslatableError(msg)
        return js_text(value)
    msg = "its reference is no text"
    raise UntranslatableError(msg)


def same_text(text: str) -> Any:
    """Return a value that stands for all with this text: `3` may be a number or a text."""
    if text not in {"true", "false", "True", "False", "null", "None"} and not _NUMBER.fullmatch(text):
        return text
    if "{{" in text or _NUMBER.fullmatch(text) is None:
        msg = f"whether a field is the text {text!r} or the value cannot be seen in the export"
        raise UntranslatableError(msg)
    return {"$oneof": [text, json.loads(text)]}


def pointer(path: str) -> str:
    """Return the JSON pointer for a path of names and indexes."""
    return "".join(f"/{name or index}" for name, index in _STEP.findall(path))


def select(written: str) -> dict[str, Any]:
    """Return the selector for the input of a grader; raise `UntranslatableError`."""
    text = written.strip()
    if OUTPUT.fullmatch(text):
        return {}
    tool = _OUTPUT_TOOL.fullmatch(text)
    if tool is not None:
        number, part, rest = tool.groups()
        if part == "name":
            return {"on": f"tool_calls[{number}].tool"}
        if not rest:
            msg = "its input is the text of all arguments, which a reply here holds as an object"
            raise UntranslatableError(msg)
        return {"on": f"tool_calls[{number}].input{rest}"}
    msg = f"its input {text!r} is more than the output text, a field of its JSON, or a tool call"
    raise UntranslatableError(msg)
