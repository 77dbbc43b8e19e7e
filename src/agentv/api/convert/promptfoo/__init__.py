"""promptfoo: configurations in YAML and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.promptfoo.suite import PromptfooSuite

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion

NAME = "promptfoo"
_KEYS = {"prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "redteam"}


def is_promptfoo(data: Any, path: Path) -> bool:
    """Return whether a document is a configuration of promptfoo, or a result file that holds one."""
    if not isinstance(data, Mapping):
        return False
    if isinstance(data.get("config"), Mapping) and "results" in data:
        return is_promptfoo(data["config"], path)
    return "prompts" in data or "defaultTest" in data or len(_KEYS & data.keys()) > 1


def convert(conversion: Conversion) -> None:
    """Convert a configuration; a result file is converted by the configuration that it holds."""
    data, place = conversion.document.data, conversion.place()
    if isinstance(data.get("config"), Mapping) and "results" in data:
        data, place = data["config"], place.at("config")
    PromptfooSuite(conversion, data, place).convert()
