"""Tools that an eval or a project declares, in any of the formats of their definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.errors import Problem
from agentv.model.tool_coverage import DeclaredTool, ToolArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.spec.file_format import ToolEntry


def declared_tools(entries: Sequence[str | ToolEntry]) -> tuple[tuple[DeclaredTool, ...], list[Problem]]:
    """Return the declared tools, and the problems of entries without a name or with one that was used before."""
    tools: dict[str, DeclaredTool] = {}
    problems = []
    for index, entry in enumerate(entries):
        tool = DeclaredTool(name=entry) if isinstance(entry, str) else _declared_tool(entry)
        if tool is None:
            problems.append(Problem(f"tools[{index}]", "a tool needs a `name`, or a `function` that has one", "whole"))
        elif tool.name in tools:
            problems.append(Problem(f"tools[{index}]", f"the tool {tool.name!r} is declared twice"))
        else:
            tools[tool.name] = tool
    return tuple(tools.values()), problems


def reported_tools(value: Any) -> list[DeclaredTool]:
    """Return the tools that a target or a reply lists: names, or definitions in any format; others are ignored."""
    tools = []
    for item in value if isinstance(value, (list, tuple)) else ():
        if isinstance(item, str) and item:
            tools.append(DeclaredTool(name=item))
        elif isinstance(item, dict):
            function = item.get("function")
            inner = function if isinstance(function, dict) else item
            name = inner.get("name")
            schemas = (inner.get(key) for key in ("input_schema", "inputSchema", "parameters"))
            schema = next((schema for schema in schemas if isinstance(schema, dict)), {})
            if isinstance(name, str) and name:
                tools.append(DeclaredTool(name=name, arguments=arguments_of(schema)))
    return tools


def merge_tools(shared: Iterable[DeclaredTool], own: Iterable[DeclaredTool]) -> tuple[DeclaredTool, ...]:
    """Return both lists; a tool of the second replaces one of the same name."""
    return tuple({tool.name: tool for tool in (*shared, *own)}.values())


def _declared_tool(entry: ToolEntry) -> DeclaredTool | None:
    function = entry.function
    name = entry.name or (function.name if function else None)
    if name is None:
        return None
    schemas = (
        entry.input_schema,
        entry.input_schema_camel,
        entry.parameters,
        function.parameters if function else None,
    )
    schema = next((schema for schema in schemas if schema is not None), {})
    return DeclaredTool(name=name, arguments=arguments_of(schema))


def arguments_of(schema: dict[str, Any]) -> tuple[ToolArgument, ...]:
    """Return the arguments that a JSON Schema of an object names, with their enumerated values."""
    properties, required = schema.get("properties"), schema.get("required")
    names = set(required) if isinstance(required, list) else set()
    return tuple(
        [
            ToolArgument(name=name, values=_enumerated(value), required=name in names)
            for name, value in (properties if isinstance(properties, dict) else {}).items()
        ]
    )


def _enumerated(schema: Any) -> tuple[Any, ...]:
    if not isinstance(schema, dict):
        return ()
    if isinstance(schema.get("enum"), list):
        return tuple(schema["enum"])
    if schema.get("type") == "boolean":
        return (True, False)
    choices = [choice for key in ("anyOf", "oneOf") for choice in schema.get(key) or () if isinstance(choice, dict)]
    constants = [choice["const"] for choice in choices if "const" in choice]
    return tuple(constants) if choices and len(constants) == len(choices) else ()
