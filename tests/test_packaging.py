"""Is the package what it says it is: its names, its imports, its command, its files?"""

import ast
import os
import subprocess
import sys
import sysconfig
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import agentv

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "agentv"
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# In pieces, so that this file does not hold what it looks for.
NOT_OURS = ("/" + "work/", "pypi" + ".org", "python" + "hosted.org")


def module_names() -> list[str]:
    """Every module below `agentv`, found by file so that none is imported to be listed."""
    paths = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def project_files() -> list[Path]:
    """Return the files that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter afresh, with no say for the caller's environment."""
    return subprocess.run([sys.executable, "-I", *arguments], capture_output=True, text=True, check=False)


def test_exported_names_resolve() -> None:
    missing = [name for name in agentv.__all__ if not hasattr(agentv, name)]
    assert missing == []


def test_exported_names_are_the_public_names() -> None:
    assert [name for name in dir(agentv) if not name.startswith("_")] == sorted(
        name for name in agentv.__all__ if not name.startswith("_")
    )


def test_type_checkers_read_the_list_that_the_package_reads() -> None:
    stub = ast.parse((Path(agentv.__file__).with_suffix(".pyi")).read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = {alias.name: (node.module, alias.asname) for node in imports for alias in node.names}
    assert sorted(names) == agentv.__all__
    for name, (module, alias) in names.items():
        assert alias == name, "only `name as name` is an export to a type checker"
        assert getattr(import_module(str(module)), name) is getattr(agentv, name)


def test_a_star_import_gives_all_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from agentv import *", namespace)  # noqa: S102 - allowed at module level only
    assert set(agentv.__all__) <= namespace.keys()


IMPORT_EACH = """
import os, sys
import aiohttp, click, jinja2, msgspec, regex, yaml

for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            __import__(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        print(f"{name}: status {status}", flush=True)
"""
"""Imports each module in a process that has none of the others; their libraries are loaded once for all of them."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("part", range(4))
def test_each_module_imports_alone_without_a_warning(part: int) -> None:
    names = module_names()[part::4]
    assert len(names) > 50
    done = python("-W", "error", "-c", IMPORT_EACH, *names)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_of_the_package_loads_no_library() -> None:
    done = python("-c", "import agentv, sys; print(*sys.modules, sep='\\n')")
    assert done.returncode == 0, done.stderr
    assert {"msgspec", "asyncio", "regex", "click"} & set(done.stdout.split()) == set()


def test_nothing_is_asked_of_click_that_older_versions_lack() -> None:
    # `click.ParamType` is generic since 8.4 only.
    done = python("-c", "import click; click.ParamType.__class_getitem__ = None; import agentv.cli.eval")
    assert done.returncode == 0, done.stderr


def test_command_prints_the_version() -> None:
    script = Path(sysconfig.get_path("scripts")) / "agentv"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"agentv {agentv.__version__}\n"


def test_module_as_command_prints_the_version() -> None:
    done = python("-m", "agentv", "--version")
    assert done.stdout == f"agentv {agentv.__version__}\n", done.stderr


def test_typing_marker_is_there() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_there_are_locks() -> None:
    assert {path.name for path in LOCKS} >= {"dev.txt", "bench-agentevals.txt"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    assert "--hash=sha256:" in text


@pytest.mark.parametrize("text", NOT_OURS)
def test_no_file_names_a_machine_or_a_registry(text: str) -> None:
    holders = [str(path.relative_to(ROOT)) for path in project_files() if text.encode() in path.read_bytes()]
    assert holders == []


def test_the_oldest_msgspec_allowed_is_one_whose_errors_we_catch() -> None:
    # Malformed JSON of an agent is caught as a `ValueError`, which it is since 0.21: with less, it ends an execution.
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    (floor,) = (each.partition(">=")[2] for each in needed if each.startswith("msgspec"))
    assert tuple(map(int, floor.split("."))) >= (0, 21)
