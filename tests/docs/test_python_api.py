"""The reference of the Python API is generated from the public classes and functions.

`AGENTV_REWRITE_DOCS=1 pytest tests/docs/test_python_api.py` writes the page; read the diff.
"""

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agentv
from agentv.spec.schema import field_docs

DOCS = Path(__file__).parents[2] / "docs" / "reference"
OPENINGS = {
    "python-api.md": """# Python API

The public functions and exceptions of `agentv`, generated from the code. [From Python](../guide/python.md) shows how to
use them; [the classes](python-classes.md) have a page of their own.
""",
    "python-classes.md": """# Python classes

The public classes of `agentv` whose values are passed around, generated from the code. There are pages of
[the functions](python-api.md) and of [what an extension implements](python-extensions.md).
""",
    "python-extensions.md": """# Python classes for extensions

The public classes of `agentv` that an extension implements or is called with, generated from the code. See
[evaluators of your own](../guide/own-evaluators.md) and [providers of your own](../guide/own-providers.md).
""",
}
EXTENSION_MODULES = {
    "agentv.protocols",
    "agentv.protocols.stores",
    "agentv.evaluators.base",
    "agentv.providers.base",
    "agentv.model.request",
}
BLANK = "\n\n"
WIDTH = 100
"""From this length on, a signature has a line for each parameter."""


def render_page(name: str) -> str:
    public = {name: getattr(agentv, name) for name in agentv.__all__}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    errors = {name: value for name, value in public.items() if inspect.isclass(value) and issubclass(value, Exception)}
    classes = {name: value for name, value in public.items() if name not in functions and name not in errors}
    extensions = {name: value for name, value in classes.items() if value.__module__ in EXTENSION_MODULES}
    values = {name: value for name, value in classes.items() if name not in extensions}
    pages: dict[str, dict[str, dict[str, Any]]] = {
        "python-api.md": {"Functions": functions, "Exceptions": errors},
        "python-classes.md": {"": values},
        "python-extensions.md": {"": extensions},
    }
    lines = [OPENINGS[name]]
    for title, group in pages[name].items():
        lines += [f"## {title}", ""] if title else []
        for entry, value in group.items():
            lines += [f"##{'#' if title else ''} `{entry}`", "", *render_entry(entry, value)]
    return "\n".join(lines).rstrip() + "\n"


def render_entry(name: str, value: Any) -> Iterator[str]:
    if inspect.isfunction(value):
        prefix = "async " if inspect.iscoroutinefunction(value) else ""
        yield from ("```python", f"{prefix}{name}{render_signature(value)}", "```", "")
    # Protocols and structs may have their fields below the first paragraph; here they are a table.
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    kept = [each for each in paragraphs if not each.startswith("Fields:")]
    yield from ("\n\n".join(kept), "")
    if inspect.isclass(value) and issubclass(value, msgspec.Struct):
        docs = field_docs(value)
        rows = [f"| `{field.name}` | {one_line(docs.get(field.name, ''))} |" for field in msgspec.structs.fields(value)]
        yield from ("| Field | Meaning |", "| --- | --- |", *rows, "") if rows else ()
    if inspect.isclass(value):
        methods = [
            f"| `{name}({', '.join(parameters(found))})` | {one_line(str(inspect.getdoc(found)).partition(BLANK)[0])} |"
            for name, found in vars(value).items()
            if inspect.isfunction(found) and not name.startswith("_")
        ]
        yield from ("| Method | Meaning |", "| --- | --- |", *methods, "") if methods else ()


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def render_signature(function: Any) -> str:
    """Return the parameters as they are written in the source."""
    source = inspect.getsource(function)
    text = re.sub(r"^\s*(?:@.*\n\s*)*(?:async )?def \w+", "", source)
    parts = re.sub(r"\s*#.*", "", text[: re.search(r":\n", text).start()])  # type: ignore[union-attr]
    flat = re.sub(r",? \)", ")", re.sub(r"\s+", " ", parts).replace("( ", "("))
    return flat if len(flat) < WIDTH else inspect.cleandoc(parts)


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


@pytest.mark.parametrize("name", OPENINGS)
def test_the_page_has_the_public_names(name: str) -> None:
    page = render_page(name)
    if os.environ.get("AGENTV_REWRITE_DOCS"):
        (DOCS / name).write_text(page, encoding="utf-8")
    shown = (DOCS / name).read_text(encoding="utf-8")
    assert shown == page, "write it with AGENTV_REWRITE_DOCS=1, and read the difference"
