"""Files around the code: workflows, forms, hooks, changelog fragments, pages for contributors."""

import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
FRAGMENTS = sorted((ROOT / "changelog.d").glob("*.md"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RIGHTS = {
    ("release.yml", "publish"): {"id-token": "write"},
    ("release.yml", "announce"): {"contents": "write"},
    ("docs.yml", "publish"): {"pages": "write", "id-token": "write"},
}
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@(?:v\d+|release/v\d+)$")


class GitHubLoader(yaml.SafeLoader):
    """YAML as GitHub reads it: `on` is a word."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), GitHubLoader)  # noqa: S506 - a safe loader
    return loaded


def recipe(target: str) -> list[str]:
    """Commands of a target of the Makefile, without `@` and the folder of the environment."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert found is not None, target
    checked = " ".join(name for name in ("src", "tests", "benchmarks", "examples") if (ROOT / name).exists())
    text = found[1].replace("$(BIN)/", "").replace("$(CHECKED)", checked).replace("$(ARGS)", "")
    return [line.strip().removeprefix("@").strip() for line in text.splitlines()]


def python_versions() -> list[str]:
    names = [each.rpartition(" :: ")[2] for each in PROJECT["project"]["classifiers"] if ":: Python :: 3." in each]
    return sorted(names, key=lambda name: int(name.partition(".")[2]))


class TestWorkflows:
    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
    def test_rights_are_as_few_as_possible(self, path: Path) -> None:
        workflow = read(path)
        assert workflow["permissions"] == {"contents": "read"}
        assert workflow["concurrency"]["group"]
        for name, job in workflow["jobs"].items():
            assert job.get("permissions") == RIGHTS.get((path.name, name)), name

    @pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
    def test_actions_are_pinned_by_major_version_and_jobs_end(self, path: Path) -> None:
        for name, job in read(path)["jobs"].items():
            if "uses" in job:
                assert (ROOT / job["uses"]).is_file()
                continue
            assert int(job["timeout-minutes"]) <= 60, name
            used = [step["uses"] for step in job["steps"] if "uses" in step]
            assert [each for each in used if not PINNED.match(each)] == []
            assert all(("uses" in step) != ("run" in step) for step in job["steps"])

    def test_ci_runs_every_python_and_system_that_is_supported(self) -> None:
        jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
        assert python_versions()[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
        for name in ("test", "windows"):
            assert jobs[name]["strategy"]["matrix"]["python"] == python_versions()
        systems = {*jobs["test"]["strategy"]["matrix"]["os"], jobs["windows"]["runs-on"]}
        assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}

    def test_the_steps_of_windows_are_those_of_make_check(self) -> None:
        jobs = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
        steps = [step["run"] for step in jobs["windows"]["steps"] if "run" in step]
        commands = [*recipe("lint"), *recipe("fast")]
        assert steps[-len(commands) :] == commands
        assert [step["run"] for step in jobs["test"]["steps"] if "run" in step] == ["make test PYTHON=python"]

    def test_a_release_is_tested_and_its_tag_is_its_version(self) -> None:
        release = read(ROOT / ".github" / "workflows" / "release.yml")
        assert release["on"] == {"push": {"tags": ["v*"]}}
        assert release["jobs"]["test"] == {"uses": "./.github/workflows/ci.yml"}
        assert set(release["jobs"]["publish"]["needs"]) == {"test", "build"}
        commands = "\n".join(step.get("run", "") for step in release["jobs"]["build"]["steps"])
        assert '[ "v$version" != "$GITHUB_REF_NAME" ]' in commands
        assert "python -m hatchling build" in commands

    def test_dependabot_looks_at_packages_and_actions(self) -> None:
        updates = read(ROOT / ".github" / "dependabot.yml")["updates"]
        assert {each["package-ecosystem"] for each in updates} == {"pip", "github-actions"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_has_the_fields_of_forms(path: Path) -> None:
    form = read(path)
    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert {each["type"] for each in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({each["id"] for each in fields}) == len(fields)
    assert all(each["attributes"]["label"] for each in fields)
    assert any(each.get("validations", {}).get("required") == "true" for each in fields)


def test_hooks_run_the_linters_of_the_project() -> None:
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert all(hook["language"] == "system" for hook in hooks)
    programs = [hook["entry"].removeprefix(".venv/bin/").split()[0] for hook in hooks]
    assert programs == [line.split()[0] for line in recipe("lint")]
    assert next(hook["entry"] for hook in hooks if hook["id"] == "mypy").removeprefix(".venv/bin/") in recipe("lint")


class TestChangelog:
    @pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
    def test_a_fragment_is_one_or_two_sentences(self, path: Path) -> None:
        types = "|".join(each["directory"] for each in PROJECT["tool"]["towncrier"]["type"])
        assert re.fullmatch(rf"\+[a-z0-9-]+\.(?:{types})\.md", path.name)
        text = " ".join(path.read_text(encoding="utf-8").split())
        without_code = re.sub(r"`[^`]*`", "Code", text)
        assert text.endswith("."), "a full stop ends it"
        assert len(re.findall(r"[.!?](?= [A-Z]|$)", without_code)) <= 2, "one or two sentences"

    def test_there_are_fragments_or_a_release(self) -> None:
        assert FRAGMENTS or "\n## " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_nothing_that_is_ignored_is_tracked() -> None:
    command = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert listed.stdout == "", "leftovers of a merge, or an environment of one machine"


def links(page: Path) -> list[str]:
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link]


def test_policies_are_linked() -> None:
    assert "docs/reference/compatibility.md" in links(ROOT / "README.md")
    linked = links(ROOT / "CONTRIBUTING.md")
    assert {"docs/reference/compatibility.md", "docs/contributing/architecture.md", "RELEASING.md", "SECURITY.md"} <= {
        *linked
    }


def test_the_walk_of_a_case_names_what_is_there() -> None:
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    assert page.count("\n") <= 40, "one screen"
    named = re.findall(r"`((?:\w+/)*\w+\.py)(?::(\w+))?`", page)
    assert len(named) >= 16
    for file, attribute in named:
        path = Path("agentv", file)
        assert (ROOT / "src" / path).is_file(), file
        module = import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        assert not attribute or hasattr(module, attribute), f"{file}:{attribute}"


def test_the_policy_covers_every_entry_point_group_and_schema() -> None:
    page = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
    registry = (ROOT / "src" / "agentv" / "registry.py").read_text(encoding="utf-8")
    groups = set(re.findall(r'"(agentv\.\w+)"', registry)) - {"agentv"}
    assert groups
    assert {name for name in groups if f"`{name}`" not in page} == set()
