"""A folder with evals and tests in which pytest is run."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.support.command import Json, calls, cases, mocked

STRICT = (
    *("-p", "no:cacheprovider", "-W", "error", "--strict-markers", "--strict-config"),
    # This plugin of a library is slow to import, and uses what Python 3.14 deprecates: with `-W error` no test runs.
    *("-p", "no:langsmith_plugin"),
)
"""Warnings, unknown markers, coroutines that were not awaited and event loops that were not closed are errors."""


class Project:
    """Writes files and runs pytest in this process or in another."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.folder: Path = pytester.path

    def write(self, name: str, content: str | Json) -> Path:
        """Write a file; a mapping is written as YAML."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        path.write_text(text, encoding="utf-8")
        return path

    def here(self, *args: str) -> pytest.RunResult:
        """Run pytest with this plugin only."""
        return self.pytester.runpytest_inprocess("-p", "agentv", *STRICT, *args)

    def process(self, *args: str) -> pytest.RunResult:
        """Run pytest in a process that finds the plugin by its entry point."""
        return self.pytester.runpytest_subprocess(*STRICT, *args)

    def collected(self, *args: str) -> list[str]:
        """Return the node ids of the collected tests."""
        lines = self.here("--agentv", "--collect-only", "-q", *args).outlines
        return [line for line in lines if "::" in line and not line.startswith("ERROR")]

    def junit(self, *args: str) -> dict[str, ET.Element]:
        """Return the test cases of the JUnit file by name."""
        self.here("--agentv", "--junitxml=junit.xml", *args)
        tree = ET.parse(self.folder / "junit.xml")  # noqa: S314 - pytest wrote it
        return {str(case.get("name")): case for case in tree.iter("testcase")}


def support(**more: Any) -> Json:
    """Return an eval with a case that passes and one that fails."""
    return {"targets": [mocked(calls("search"), name="agent")], "cases": [*cases("finds"), *failing()], **more}


def failing(name: str = "verifies", **more: Any) -> list[Json]:
    """Return a case that expects one call more than is made."""
    check = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}, {"tool": "verify"}]}
    return cases(name, check=check, **more)
