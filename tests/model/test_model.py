"""Values: plain, immutable, compared by content."""

import ast
import pickle
import pydoc
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agentv
from agentv.errors import PluginError, Problem
from agentv.model import Message, ToolCall


def test_a_trace_is_deprecated_in_the_json_schema_and_says_what_to_use() -> None:
    schema = msgspec.json.schema(agentv.ProviderResponse)["$defs"]["ProviderResponse"]["properties"]
    assert schema["trace"]["deprecated"] is True
    assert schema["trace_ref"]["deprecated"] is True
    assert "deprecated" not in schema["output_messages"]


def test_missing_is_not_null() -> None:
    assert ToolCall(tool="A") != ToolCall(tool="A", input=None)
    assert msgspec.to_builtins(ToolCall(tool="A")) == {"tool": "A"}
    assert msgspec.to_builtins(ToolCall(tool="A", input=None, output=None)) == {
        "tool": "A",
        "input": None,
        "output": None,
    }


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "ok"),
        ({"error": "boom"}, "error"),
        ({"status": "denied", "error": "no"}, "denied"),
        ({"status": "ok"}, "ok"),
    ],
)
def test_a_status_is_never_inferred_from_a_missing_output(fields: dict[str, Any], status: str) -> None:
    assert ToolCall(tool="A", **fields).effective_status == status


def test_values_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Message(role="user").role = "assistant"  # type: ignore[misc]


def test_the_words_of_a_message() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert [Message(role="user", content=content).text for content in (None, "x", blocks)] == ["", "x", "ab"]


@pytest.mark.parametrize(
    "value",
    [
        agentv.score(
            [{"role": "assistant", "tool_calls": [{"tool": "A"}]}], [{"type": "tool_trajectory", "minimums": {"A": 1}}]
        ),
        agentv.SpecError([Problem("a", "b")]),
        PluginError("x", "dist", ValueError("y")),
        agentv.FormatError("m", path="p"),
    ],
)
def test_results_and_errors_travel_between_processes(value: Any) -> None:
    copy = pickle.loads(pickle.dumps(value))  # noqa: S301 - our own value, made a moment ago
    assert str(copy) == str(value)
    assert type(copy) is type(value)


@pytest.mark.parametrize("path", sorted(Path(agentv.__file__).parent.glob("model/*.py")), ids=lambda path: path.stem)
def test_every_field_has_a_docstring(path: Path) -> None:
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    assert not [
        f"{cls.name}: {ast.unparse(field)}"
        for cls in classes
        for field, after in zip(cls.body, [*cls.body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign) and not isinstance(after, ast.Expr)
    ]


def test_help_shows_the_fields_of_a_context() -> None:
    text = pydoc.plain(pydoc.render_doc(agentv.Context))
    assert all(f"      {name}: " in text for name in agentv.Context.__struct_fields__)
