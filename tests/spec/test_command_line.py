"""A `command` as one text: split like a shell, without a shell."""

import sys
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.errors import SpecError
from agentv.spec.loader import load_data
from agentv.spec.targets import make_provider
from tests.support.documents import READS_EVAL, complaints, whole


def target(command: Any, **more: Any) -> dict[str, Any]:
    return whole(targets=[{"name": "t", "provider": "cli", "command": command, **more}])


def arguments(command: str, **environment: str) -> tuple[str, ...]:
    (found,) = load_data(target(command)).targets
    provider: Any = make_provider(found, environment)
    return tuple(provider.command)


def problems(data: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_data(data)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("python3 agent.py", ("python3", "agent.py")),
        ("  python3   agent.py --fast ", ("python3", "agent.py", "--fast")),
        ("python3 agent.py {prompt}", ("python3", "agent.py", "{prompt}")),
        ("""python3 'my agent.py' --say="{prompt} please" """, ("python3", "my agent.py", "--say={prompt} please")),
        ("run a\\ b ''", ("run", "a b", "")),
        ("grep 'a|b' x", ("grep", "a|b", "x")),
    ],
)
def test_a_text_is_split_into_arguments(written: str, words: tuple[str, ...]) -> None:
    assert arguments(written) == words
    assert complaints(READS_EVAL, target(written)) == []


def test_a_variable_is_one_argument_whatever_it_holds() -> None:
    value = "a b 'c; rm -rf"
    assert arguments("run ${MODEL} --x=${MODEL}", MODEL=value) == ("run", value, f"--x={value}")
    assert arguments("run ${MODEL:-two words}") == ("run", "two words")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("python3 agent.py | tee log", "'|' means nothing here, there is no shell"),
        ("cd app && python3 agent.py", "'&&' means nothing here, there is no shell"),
        ("python3 agent.py > out.json", "'>' means nothing here"),
        ("python3 agent.py 2>&1", "'2>&1' means nothing here"),
        ("DEBUG=1 python3 agent.py", "'DEBUG=1' is no program: name the variables that the program may see in `env`"),
        ("python3 agent.py $(date)", "`$(` is not expanded"),
        ("python3 agent.py $HOME/x", "environment variables are written `${NAME}`"),
        ("python3 'agent.py", "a quote is not closed"),
        ("   ", "expected a program and its arguments"),
        ("sh -c 'echo {prompt}'", "would be run as code by `sh -c`"),
    ],
)
def test_what_only_a_shell_would_understand_is_one_error(written: str, said: str) -> None:
    (found,) = problems(target(written))
    assert found.startswith("targets[0].command: ")
    assert said in found


@pytest.mark.parametrize("command", ["python3 agent.py {{ prompt }}", ["python3", "agent.py", "{{ prompt }}"]])
def test_two_braces_are_an_error_that_names_the_placeholder(command: Any) -> None:
    (found,) = problems(target(command))
    assert found.endswith(": `{{ prompt }}` is not replaced in a command: write `{prompt}`")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{{prompts}}", "write `{prompt}`"),
        ("{{ inputFile }}", "write `{input_file}`"),
        ("{{ question }}", "the placeholders are `{prompt}`, `{input_file}`, "),
    ],
)
def test_two_braces_with_another_name(written: str, said: str) -> None:
    (found,) = problems(target(["run", f"--x={written}"]))
    assert said in found


def test_an_evaluator_takes_a_text_too(tmp_path: Path) -> None:
    script = tmp_path / "my check.py"
    script.write_text("print('{\"score\": 1.0}')")
    result = agentv.score({"text": "x"}, [{"type": "code", "command": f"{sys.executable} '{script}'"}])
    assert result.status == "pass"
    with pytest.raises(SpecError, match="there is no shell"):
        agentv.score({"text": "x"}, [{"type": "code", "command": "python3 check.py | head"}])


def test_a_missing_variable_names_the_file_that_may_hold_it() -> None:
    with pytest.raises(SpecError, match=r"variable KEY, which is not set: set it, or read a file with `--env-file"):
        arguments("run ${KEY}")
    with pytest.raises(SpecError, match=r"variables A, B, which are not set: set them, or read a file with `--env"):
        arguments("run ${A} ${B}")
