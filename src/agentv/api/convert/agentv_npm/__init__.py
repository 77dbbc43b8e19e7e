"""AgentV, the npm package: `evalcases` of its first versions, and `tests` with assertions of the current ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.agentv_npm.suite import CASE_KEYS, AgentVSuite

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion

NAME = "agentv-npm"
_OWN_KEYS = {"evalcases", "default_test", "evaluate_options", "governance", "environment", "assertions", "execution"}
_OWN_CASE_KEYS = {"criteria", "expected_outcome", "outcome", "expected_output", "input_messages", "expected_messages"}
_OWN_TYPES = (
    "script",
    "execution-metrics",
    "rubrics",
    "field-accuracy",
    "code-grader",
    "llm-grader",
    "tool-trajectory",
)


def is_agentv(data: Any, path: Path) -> bool:
    """Return whether a document is an eval of AgentV."""
    if not isinstance(data, Mapping):
        return False
    if "evalcases" in data or "defaultTest" in data:
        return "evalcases" in data
    cases = next((data[key] for key in CASE_KEYS if data.get(key) is not None), data.get("scenarios"))
    if cases is None:
        return False
    if _has_own_head(data) or re.search(r"(?i)(?:^|\.)eval\.ya?ml$", path.name):
        return True
    first = [case for case in cases if isinstance(case, Mapping)] if isinstance(cases, list) else []
    if any(_OWN_CASE_KEYS & case.keys() or ("id" in case and ("input" in case or "vars" in case)) for case in first):
        return True
    asserts = [
        entry for case in [data, *first] for entry in case.get("assert") or () if isinstance(case.get("assert"), list)
    ]
    return any(isinstance(entry, str) or _is_own(entry) for entry in asserts)


def _has_own_head(data: Mapping[str, Any]) -> bool:
    """Return whether the keys of a file are AgentV's: a `name`, which no configuration of promptfoo has, or others."""
    return bool(_OWN_KEYS & data.keys()) or (isinstance(data.get("name"), str) and "prompts" in data)


def _is_own(entry: Any) -> bool:
    return isinstance(entry, Mapping) and str(entry.get("type")).replace("_", "-") in _OWN_TYPES


def convert(conversion: Conversion) -> None:
    """Convert an eval."""
    AgentVSuite(conversion, conversion.document.data, conversion.place()).convert()
