"""The layout of the package and its tests: unique names, imports without cycles, short modules, mirrored folders."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
MAX_LINES = 600
SHORT = 60
"""Lines below which a module is short: merge it with its only importer, or with a relative."""
MAX_SHORT_MODULES = 12
"""Short modules: mechanisms and commands that readers look for by their names. It only goes down."""
PLAIN_FILES = {"__init__", "__main__"}
COPIED_FOLDERS = ("agentv/cli/template/", "agentv/api/convert/helpers/")
"""Folders of programs that are copied into the projects of users."""
MAX_LOCAL_IMPORTS = 60
"""Imports inside functions: in commands, the registry, for extras, or with a measured reason. It only goes down."""
TESTS = Path(__file__).parent
OTHER_TESTS = {"data", "docs", "examples", "fakes", "frameworks", "reference", "support"}
"""Folders of tests that have no package: what they hold is listed in CONTRIBUTING.md."""
HELPERS = {"conftest.py", "__init__.py"}
VAGUE_SUFFIXES = ("_laws", "_hostile", "_faults", "_malformed", "_memory", "_ends")
RIDDLES = re.compile(
    r'^\s*"""(What|Whether|How|Who|Whose|Which|Where|Everybody|Everything|Nobody|Whatever)\b', re.MULTILINE
)


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of all modules; they are parsed by the tests and not while tests are collected."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imports_of(name: str) -> Iterator[str]:
    """Yield the modules that a module imports, inside functions too, but not for type checkers alone."""
    todo: list[ast.AST] = [trees()[name]]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        todo += ast.iter_child_nodes(node)


def test_each_class_name_occurs_once() -> None:
    found = defaultdict(list)
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_no_imports_go_in_a_circle() -> None:
    graph = {name: {each for each in imports_of(name) if each in MODULES and each != name} for name in MODULES}
    while graph:
        free = {name for name, imported in graph.items() if not imported & graph.keys()}
        if not free:
            break
        graph = {name: imported for name, imported in graph.items() if name not in free}
    circle = {name: sorted(imported & graph.keys()) for name, imported in graph.items()}
    assert circle == {}, "each of these imports another of them"


def test_few_imports_stand_inside_of_functions() -> None:
    imports: set[tuple[str, int]] = set()
    for name, tree in trees().items():
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                nodes = ast.walk(function)
                imports |= {(name, node.lineno) for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))}
    count = Counter(name for name, _ in imports)
    assert sum(count.values()) <= MAX_LOCAL_IMPORTS, count.most_common(10)


def test_no_module_is_longer_than_one_sitting() -> None:
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_few_modules_are_short() -> None:
    lines = {
        name: path.read_text(encoding="utf-8").count("\n")
        for name, path in MODULES.items()
        if path.stem not in PLAIN_FILES and not path.relative_to(ROOT).as_posix().startswith(COPIED_FOLDERS)
    }
    short = {name: count for name, count in lines.items() if count < SHORT}
    assert len(short) <= MAX_SHORT_MODULES, short


def test_docstrings_say_what_a_thing_is_or_does() -> None:
    found = {name: RIDDLES.findall(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
    assert {name: words for name, words in found.items() if words} == {}


def mirrored_files() -> Iterator[Path]:
    """Yield the Python files of tests that mirror the package, relative to the folder of tests."""
    for path in sorted(TESTS.rglob("*.py")):
        relative = path.relative_to(TESTS)
        if relative.parts[0] not in OTHER_TESTS:
            yield relative


def test_folders_of_tests_mirror_the_package() -> None:
    packages = {path.parent.relative_to(ROOT / "agentv") for path in MODULES.values()}
    assert {str(path.parent) for path in mirrored_files()} <= {str(path) for path in packages}


def test_folders_that_mirror_the_package_hold_nothing_but_tests() -> None:
    others = [path for path in mirrored_files() if path.name not in HELPERS and not path.name.startswith("test_")]
    assert others == [], "fakes belong into tests/fakes, builders into tests/support"


def test_names_of_test_files_use_the_listed_suffixes() -> None:
    assert [path for path in mirrored_files() if path.stem.endswith(VAGUE_SUFFIXES)] == []
