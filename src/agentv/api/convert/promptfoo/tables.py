"""Tables of variables that stay files: a `dataset` with a template."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import CaseOrigin
from agentv.api.convert.files import read_rows
from agentv.api.convert.promptfoo.assertions import AssertionScope, translate
from agentv.api.convert.templates import RenderError, has_template, names_in, render
from agentv.api.convert.writer import Commented, Remark

if TYPE_CHECKING:
    from agentv.api.convert.promptfoo.options import TestOptions
    from agentv.api.convert.promptfoo.prompts import PromptSource
    from agentv.api.convert.promptfoo.tests import TestTable
    from agentv.api.convert.source import Place

_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEEPS_PLACEHOLDERS = {"contains", "icontains", "starts-with", "llm-rubric", "not-contains", "not-icontains"}
"""Assertions whose value reaches the evaluator as it is, so that a placeholder may stand in it."""


def make_dataset(  # noqa: PLR0913 - a table, and all that its rows are made of
    table: TestTable,
    prompt: PromptSource,
    options: TestOptions,
    scope: AssertionScope,
    own: list[tuple[Any, Place]],
    *,
    has_defaults: bool,
) -> tuple[dict[str, Any], list[CaseOrigin]] | None:
    """Return the dataset of a table; `None` if its rows have to be written out as cases."""
    text = f"{options.prefix}{prompt.text}{options.suffix}"
    if not _fits_a_template(table, prompt, text, own):
        return None
    rows = read_rows(table.path, "\t" if table.path.suffix.lower() == ".tsv" else ",")
    if any(
        has_template(value) or value.startswith("file://") or not value for _, row in rows for value in row.values()
    ):
        return None
    evaluators = [item for entry, place in own for item in translate(entry, place, scope)]
    kept = [item for item in evaluators if not isinstance(item, Remark)]
    if not kept and not has_defaults:
        return None
    template: dict[Any, Any] = {"id": f"{table.path.stem}-{{{{ _line }}}}", "input": text}
    template["vars"] = {name: f"{{{{ {name} }}}}" for name in table.columns}
    if evaluators:
        template["evaluators"] = [item.value if isinstance(item, Commented) else item for item in evaluators]
    name = scope.conversion.copy(table.path)
    origins = [CaseOrigin(f"{table.path.stem}-{line}", "", _rendered(text, row), row) for line, row in rows]
    return {"files": name, "template": template}, origins


def _fits_a_template(table: TestTable, prompt: PromptSource, text: str, own: list[tuple[Any, Place]]) -> bool:
    """Return whether prompt and assertions name columns only, so that a template of ours fills them in."""
    if prompt.reason or prompt.messages or not all(_COLUMN.fullmatch(name) for name in table.columns):
        return False
    names = names_in(text)
    if not names or not set(names) <= set(table.columns):
        return False
    for entry, _ in own:
        used = names_in(str(entry.get("value"))) if isinstance(entry, dict) else None
        if not used or not set(used) <= set(table.columns) or entry.get("type") not in _KEEPS_PLACEHOLDERS:
            return False
    return True


def _rendered(text: str, row: dict[str, str]) -> str:
    try:
        return render(text, row)
    except RenderError:
        return ""
