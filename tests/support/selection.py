"""Selection of the tests of `make check`: those that start no process, need no other environment and are quick.

The selection needs no list of tests. A test is slow if

- its folder or the suffix of its file is,
- its name says that it is about size or about limits,
- it is not among the first variants of a parametrized test, or
- its source starts a process: itself, or by a function, fixture or class of its file.
"""

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
SLOW_FOLDERS = (
    "docs",
    "examples",
    "frameworks",
    "process",
    "providers/cli",
    "providers/python",
    "pytest_plugin",
    "reference",
    "testing",
)
"""Folders whose tests start programs, or compare many examples."""
SLOW_SUFFIXES = ("_live", "_robustness", "_scale")
SLOW_NAME = re.compile(r"thousand|million|megabyte|gigabyte|very_long|linear|grows?_with|hostile|too_long|held_up|hang")
MAX_VARIANTS = 25
"""Variants of a parametrized test that `make check` runs."""
STARTS_PROCESS = re.compile(
    r"\b(subprocess|pytester|ask_there|shared_server|postgres_server|program|judge_program|pairs_program|command_line)\b"
    r"|\.(start|process|on_terminal)\("
    r"|\bprovider: (cli|python)\b|\"provider\": \"(cli|python)\""
)


def is_slow(path: Path, *names: str) -> bool:
    """Return whether a test is left out of `make check`, by the name of its function and those of its fixtures."""
    return is_slow_file(path) or SLOW_NAME.search(names[0]) is not None or not slow_names(path).isdisjoint(names)


def is_slow_file(path: Path) -> bool:
    """Return whether all tests of a file are left out."""
    relative = path.relative_to(TESTS).as_posix()
    return relative.startswith(tuple(f"{folder}/" for folder in SLOW_FOLDERS)) or path.stem.endswith(SLOW_SUFFIXES)


@cache
def slow_names(path: Path) -> frozenset[str]:
    """Return the names of functions and classes of a file that start a process, themselves or by another of these."""
    text = path.read_text(encoding="utf-8")
    if not STARTS_PROCESS.search(text):
        return frozenset()
    sources = dict(_definitions(ast.parse(text), text))
    slow = {name for name, source in sources.items() if STARTS_PROCESS.search(source)}
    while found := {name for name, source in sources.items() if name not in slow and _mentions(source, slow)}:
        slow |= found
    return frozenset(slow)


def _definitions(tree: ast.Module, text: str) -> list[tuple[str, str]]:
    """Return the names and sources of functions, assignments and methods; equal names are one."""
    lines = text.splitlines(keepends=True)
    found: dict[str, str] = {}
    todo: list[ast.stmt] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ClassDef) and any(isinstance(each, ast.FunctionDef) for each in node.body):
            todo += node.body
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names, first = [node.name], min([node.lineno, *(each.lineno for each in node.decorator_list)])
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names, first = [each.id for each in targets if isinstance(each, ast.Name)], node.lineno
        else:
            continue
        for name in names:
            found[name] = found.get(name, "") + "".join(lines[first - 1 : node.end_lineno])
    return list(found.items())


def _mentions(source: str, names: set[str]) -> bool:
    return not names.isdisjoint(re.findall(r"\w+", source))
