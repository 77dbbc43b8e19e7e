"""Do the pages of the frameworks show what happens, with the real libraries and a scripted model?

A page whose library is not installed here is only checked for its form; `make frameworks` installs all of them.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import agentv
from agentv.spec.loader import load_evals
from tests.docs import test_guides as guides

PAGES = sorted((guides.DOCS / "guide" / "frameworks").glob("*.md"))
SYSTEMS = {
    "adk": "adk",
    "ai-sdk": "ai_sdk",
    "claude-agent-sdk": "claude_agent_sdk",
    "crewai": "crewai",
    "langgraph": "langgraph",
    "llama-index": "llama_index",
    "openai-agents": "openai_agents",
    "pydantic-ai": "pydantic_ai",
    "strands": "strands",
}
"""The system of each page, by the name of its folder below `.venv-samples`."""
AT_HAND = {
    "adk": ".venv-adk",
    "langgraph": ".venv-langgraph",
    "openai_agents": ".venv",
    "pydantic_ai": ".venv",
}
"""Systems that `make test` has."""
LAUNCHER = """#!{python}
import sys
sys.path.insert(0, {ours!r})
sys.path.append({packages!r})  # what agentv needs and the framework does not bring
from agentv.cli.main import main
sys.argv[0] = "agentv"
main()
"""


def environment_of(system: str) -> Path:
    """Find the environment that has the library: `make frameworks` names a folder of others."""
    chosen = os.environ.get("AGENTV_FRAMEWORKS")
    if system in AT_HAND and not chosen:
        return guides.ROOT / AT_HAND[system]
    return guides.ROOT / (chosen or ".venv-samples") / system


def install_agentv(python: Path, folder: Path) -> Path:
    """Write a command `agentv` that runs in the framework's environment, and return its folder."""
    folder.mkdir()
    command = folder / "agentv"
    ours, packages = (str(Path(str(module.__file__)).parents[1]) for module in (agentv, msgspec))
    command.write_text(LAUNCHER.format(python=python, ours=ours, packages=packages), encoding="utf-8")
    command.chmod(0o755)
    return folder


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def scripted_api() -> Iterator[str]:
    """Run the stand-in of Anthropic's API, and give its address."""
    program = guides.ROOT / "tests" / "data" / "models" / "anthropic_api.py"
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def run(text: str, environment: Path, folder: Path, **env: str) -> tuple[str, list[str]]:
    """Run a page in a folder below this one with the packages of an environment."""
    project = folder / "project"
    project.mkdir()
    modules = environment / "node_modules"
    if modules.exists():
        (project / "node_modules").symlink_to(modules)
        return guides.run_page(text, project)
    python = Path(sys.executable) if environment.name == ".venv" else environment / "bin" / "python"
    shell = guides.Shell(project, install_agentv(python, folder / "bin"), **env)
    return guides.run_page(text, project, shell)


@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("name", SYSTEMS)
def test_examples_do_what_the_page_shows(name: str, tmp_path: Path) -> None:
    environment = environment_of(SYSTEMS[name])
    if environment.name != ".venv" and not (environment / ".stamp").exists():
        pytest.skip(f"there is no {environment.relative_to(guides.ROOT)}: `make frameworks` installs it")
    page = next(page for page in PAGES if page.stem == name)
    text = page.read_text(encoding="utf-8")
    port = str(free_port())
    with scripted_api() as url:
        printed, wrong = run(
            text.replace("3000", port),
            environment,
            tmp_path,
            ANTHROPIC_BASE_URL=url,
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            CREWAI_DISABLE_TELEMETRY="true",
            OTEL_SDK_DISABLED="true",
        )
    if guides.REWRITE and wrong:
        page.write_text(printed.replace(port, "3000"), encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_is_in_form(page: Path, tmp_path: Path) -> None:
    guides.test_every_example_is_run(page)
    guides.test_lines_are_short(page)
    for block in guides.blocks(page.read_text(encoding="utf-8")):
        kind, _, name = block.marker.partition(": ")
        if kind == "file" and name.endswith(".eval.yaml"):
            (tmp_path / name).write_text(block.text, encoding="utf-8")
            load_evals([tmp_path / name])
        elif kind == "file" and ", in tests: " in name:
            assert (guides.ROOT / name.partition(", in tests: ")[2]).is_file()
        elif kind in ("cases", "targets"):
            guides.check_snippet(block, tmp_path)


def test_every_page_is_run_and_listed() -> None:
    names = {page.stem for page in PAGES} - {"index"}
    assert names == set(SYSTEMS)
    index = (guides.DOCS / "guide" / "frameworks" / "index.md").read_text(encoding="utf-8")
    readme = (guides.ROOT / "README.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"\]\(([\w-]+)\.md\)", index))
    assert names == set(re.findall(r"\]\(docs/guide/frameworks/([\w-]+)\.md\)", readme)) - {"index"}
