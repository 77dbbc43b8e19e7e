"""promptfoo's assertions that run code: JavaScript, Python, Ruby, webhooks, and any other after a `transform`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.files import PREFIX, find_file, is_file

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.assertions import Assertion

CHECKS = "promptfoo_checks.py"
RUNNER = "promptfoo_assert.mjs"
RUBY_RUNNER = "promptfoo_assert.rb"
_UNKNOWN_CONTEXT = re.compile(r"\b(?:context\s*\??\.|\{[^}]*)\s*\b(logProbs|trace|provider)\b(?!Response)")
_TRANSFORMED = {
    *("contains", "icontains", "contains-all", "icontains-all", "contains-any", "icontains-any"),
    *("equals", "starts-with", "regex", "is-json", "word-count", "levenshtein"),
}
"""Assertions that the JavaScript runner knows itself."""


def _script_file(value: str, assertion: Assertion) -> tuple[str, str]:
    """Return the copy of a script in the output, and the name of its function."""
    name, _, function = value.removeprefix(PREFIX).partition(":")
    path = find_file(name, assertion.place.document.folder)
    return assertion.scope.conversion.copy(path), function


def _config(assertion: Assertion) -> dict[str, Any]:
    """Return the settings that the runners share."""
    config: dict[str, Any] = {}
    if assertion.threshold is not None:
        config["threshold"] = assertion.threshold
    if assertion.negated:
        config["inverse"] = True
    if assertion.graded:
        config["graded"] = True
    if isinstance(assertion.entry.get("config"), Mapping):
        config["config"] = assertion.entry["config"]
    if assertion.scope.parses_json:
        config["json_output"] = True
    return config


def _node(assertion: Assertion, arguments: list[str], config: dict[str, Any]) -> dict[str, Any]:
    if assertion.transform is not None:
        config = {"transform": [_code(part) for part in assertion.transform.split("\n\0\n")], **config}
    command = ["node", assertion.scope.conversion.helper(RUNNER), *arguments]
    return {"type": "code", "command": command, "config": config}


def _code(text: str) -> str:
    if is_file(text):
        msg = "its transform is in a file"
        raise UntranslatableError(msg)
    return text


def _refuse_context(code: str) -> None:
    """Refuse code that uses parts of promptfoo's context that a reply here does not have."""
    used = _UNKNOWN_CONTEXT.search(code)
    if used:
        msg = f"its code uses `context.{used[1]}`, which has no counterpart"
        raise UntranslatableError(msg)


def _javascript(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, str) or not value.strip():
        msg = "its value is no code"
        raise UntranslatableError(msg)
    if is_file(value):
        if Path(value.partition("#")[0]).suffix.partition(":")[0] in {".ts", ".mts", ".cts"}:
            assertion.place.note("javascript", "a TypeScript file needs Node.js 23 or later, which runs it as it is")
        name, function = _script_file(value, assertion)
        config = _config(assertion)
        if function:
            config["function"] = function
        return _node(assertion, [f"./{name}"], config)
    if value.startswith("package:"):
        msg = "its function is in a package of Node.js"
        raise UntranslatableError(msg)
    _refuse_context(value)
    return _node(assertion, [], {"code": value.rstrip(), **_config(assertion)})


def _python(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, str) or not value.strip():
        msg = "its value is no code"
        raise UntranslatableError(msg)
    if assertion.transform is not None:
        msg = "its transform is JavaScript, and its check is Python"
        raise UntranslatableError(msg)
    helper = assertion.scope.conversion.helper(CHECKS)
    config = _config(assertion)
    if is_file(value) or re.fullmatch(r"[\w./-]+\.py(?::\w+)?", value.strip()):
        name, function = _script_file(value.strip(), assertion)
        config = {"file": name, "function": function or "get_assert", **config}
        return {"type": "python", "function": f"{helper}:run_file", "config": config}
    _refuse_context(value.replace("context['", "context.").replace('context["', "context."))
    return {"type": "python", "function": f"{helper}:run_code", "config": {"code": value.rstrip(), **config}}


def _ruby(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if not isinstance(value, str) or not value.strip() or assertion.transform is not None:
        msg = "its value is no code, or stands beside a transform in JavaScript"
        raise UntranslatableError(msg)
    command = ["ruby", assertion.scope.conversion.helper(RUBY_RUNNER)]
    config = _config(assertion)
    if is_file(value):
        name, function = _script_file(value, assertion)
        config = {"function": function or "get_assert", **config}
        return {"type": "code", "command": [*command, f"./{name}"], "config": config}
    _refuse_context(value)
    return {"type": "code", "command": command, "config": {"code": value.rstrip(), **config}}


def _webhook(assertion: Assertion) -> dict[str, Any]:
    url = assertion.text_value()
    if assertion.transform is not None:
        msg = "its transform is JavaScript"
        raise UntranslatableError(msg)
    function = f"{assertion.scope.conversion.helper(CHECKS)}:webhook"
    return {"type": "python", "function": function, "config": {"url": url, **_config(assertion)}}


def convert_transformed(assertion: Assertion) -> dict[str, Any]:
    """Return a check of a transformed output, done by the JavaScript runner."""
    if assertion.type not in _TRANSFORMED:
        msg = "the output is transformed before it, which only checks of texts can follow"
        raise UntranslatableError(msg)
    config: dict[str, Any] = {"assert": assertion.type}
    if assertion.value is not None:
        config["value"] = assertion.value
    return _node(assertion, [], {**config, **_config(assertion)})


CONVERTERS: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    "javascript": _javascript,
    "python": _python,
    "ruby": _ruby,
    "webhook": _webhook,
}
