"""`python`, and the decorator: a function of the user's decides."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import agentv
from agentv.cli.main import group
from agentv.model.results import EvaluatorResult
from agentv.spec.loader import load_evals

REPLY: list[Any] = [{"role": "assistant", "content": "It is sunny.", "tool_calls": [{"tool": "weather"}]}]


def checked(folder: Path, code: str, **more: Any) -> EvaluatorResult:
    """Return the result of the function `check` of this code."""
    (folder / "checks.py").write_text(code)
    config = {"type": "python", "function": "./checks.py:check", **more}
    (result,) = agentv.score(REPLY, [config], root=str(folder)).evaluators
    return result


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("True", ("pass", 1.0, ("python holds",), ())),
        ("False", ("fail", 0.0, (), ("python does not hold",))),
        ("0.25", ("fail", 0.25, (), ("python gives 0.25, and 1 is wanted",))),
        ("1", ("pass", 1.0, ("python holds",), ())),
        ("(True, 'it is sunny')", ("pass", 1.0, ("it is sunny",), ())),
        ("(0.5, 'half of it')", ("fail", 0.5, (), ("half of it",))),
        ("{'score': 0.5, 'hits': ['a'], 'misses': 'b', 'details': {'n': 1}}", ("fail", 0.5, ("a",), ("b",))),
        ("{'score': True}", ("pass", 1.0, ("python holds",), ())),
        ("EvaluatorResult(name='x', type='x', status='pass', score=1.0, hits=('a',))", ("pass", 1.0, ("a",), ())),
        ("EvaluatorResult(name='x', type='x', status='skipped', score=None)", ("skipped", None, (), ())),
    ],
)
def test_what_it_may_return(tmp_path: Path, returned: str, expected: tuple[Any, ...]) -> None:
    code = f"from agentv import EvaluatorResult\ndef check(ctx):\n    return {returned}\n"
    result = checked(tmp_path, code)
    assert (result.status, result.score, result.hits, result.misses) == expected
    assert (result.name, result.type) == ("python", "python")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("None", "returned nothing"),
        ("7", "between 0 and 1; the check gave 7"),
        ("float('nan')", "between 0 and 1"),
        ("'yes'", "returned a str"),
        ("[True]", "returned a list"),
        ("{'hits': []}", "without a `score`"),
        ("{'score': 1, 'mises': []}", "unknown key 'mises'; did you mean 'misses'?"),
        ("{'score': 1, 'details': 3}", "`details` that are no mapping"),
        ("{'score': 1, 'hits': 3}", "`hits` that are no list"),
        ("{'error': 'the clock is broken'}", "the clock is broken"),
    ],
)
def test_what_means_nothing_is_an_error(tmp_path: Path, returned: str, reason: str) -> None:
    result = checked(tmp_path, f"def check(ctx):\n    return {returned}\n")
    assert (result.status, result.score) == ("error", None)
    assert reason in result.details["error"]


@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("thrown", "reason"),
    [
        ("ValueError('no\\nsun')", "ValueError: no sun (checks.py, line 2)"),
        ("AssertionError", "AssertionError (checks.py, line 2)"),
        ("SystemExit(0)", "SystemExit: 0 (checks.py, line 2)"),
        ("KeyboardInterrupt", "KeyboardInterrupt (checks.py, line 2)"),
        ("TimeoutError('slow')", "TimeoutError: slow (checks.py, line 2)"),
        ("__import__('asyncio').CancelledError", "CancelledError (checks.py, line 2)"),
        ("__import__('pytest').fail.Exception('no')", "Failed: no (checks.py, line 2)"),  # which is no `Exception`
        (
            "type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})",
            "Odd: its text is itself an error (checks.py, line 2)",
        ),
    ],
)
def test_one_that_throws_is_an_error_with_the_last_line(tmp_path: Path, kind: str, thrown: str, reason: str) -> None:
    result = checked(tmp_path, f"{kind} check(ctx):\n    raise {thrown}\n")
    assert (result.status, result.score, result.details) == ("error", None, {"error": reason})


def test_it_is_handed_the_context(tmp_path: Path) -> None:
    code = """
def check(ctx):
    assert ctx.candidate == "It is sunny."
    assert [call.tool for call in ctx.calls] == ["weather"]
    return ctx.config == {"most": 3}
"""
    assert checked(tmp_path, code, config={"most": 3}).status == "pass"


def test_more_parameters_come_from_its_config(tmp_path: Path) -> None:
    code = "async def check(ctx, most, least=1):\n    return least <= len(ctx.candidate.split()) <= most\n"
    assert checked(tmp_path, code, config={"most": 3}).status == "pass"
    assert checked(tmp_path, code, config={"most": 2}).status == "fail"
    wrong = checked(tmp_path, code, config={"mst": 2}).details["error"]
    assert "unexpected keyword argument 'mst'" in wrong


def test_its_config_is_its_own(tmp_path: Path) -> None:
    code = "def check(ctx):\n    ctx.config['words'].append('b')\n    return len(ctx.config['words']) == 2\n"
    for _ in range(3):
        assert checked(tmp_path, code, config={"words": ["a"]}).status == "pass"


def _spoil(ctx: agentv.Context) -> bool:
    for call in (*(ctx.calls or ()), *(call for message in ctx.output_messages or () for call in message.tool_calls)):
        call.input.pop("city", None)  # the calls are those of the messages
    (ctx.response.metadata or {}).clear()
    ctx.case.vars["seen"] = True
    return True


def test_what_it_writes_into_its_context_no_other_check_sees(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("from tests.evaluators.test_python import _spoil as check\n")
    call = {"tool": "weather", "input": {"city": "Paris"}}
    reply = {"output_messages": [{"role": "assistant", "content": "", "tool_calls": [call]}], "metadata": {"n": 1}}
    seen: list[Any] = []

    @agentv.evaluator
    def look(ctx: agentv.Context) -> bool:
        seen.append((ctx.calls[0].input if ctx.calls else None, ctx.response.metadata, ctx.case.vars))
        return True

    wanted = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "weather", "input": {"city": "Paris"}}]}
    checks = [{"type": "python", "function": "./checks.py:check"}, agentv.evaluator(_spoil)(), look(), wanted]
    result = agentv.score(reply, checks, root=str(tmp_path))
    assert [each.status for each in result.evaluators] == ["pass"] * 4, result
    assert seen == [({"city": "Paris"}, {"n": 1}, {})]
    assert call["input"] == {"city": "Paris"}


def test_options_of_every_evaluator_work(tmp_path: Path) -> None:
    result = checked(tmp_path, "def check(ctx):\n    return 0.6\n", threshold=0.5, weight=2, name="words")
    assert (result.status, result.weight, result.name) == ("pass", 2, "words")
    assert checked(tmp_path, "def check(ctx):\n    return True\n", **{"not": True}).status == "fail"


def test_a_module_is_found_by_its_name() -> None:
    config = {"type": "python", "function": "agentv.evaluators.python:max_words", "config": {"most": 2}}
    (result,) = agentv.score(REPLY, [config]).evaluators
    assert result.misses == ("the answer has 3 words (at most: 2)",)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("nowhere:check", "no module 'nowhere' on the Python path; a file beside the eval is written './nowhere.py:"),
        ("./nowhere.py:check", "is not a file below"),
        ("../../outside.py:check", "lies outside"),
        ("agentv.evaluators.python:max_word", "has no 'max_word'; did you mean 'max_words'?"),
        ("agentv.evaluators.python:TIMEOUT_S", "is a float, not a function"),
    ],
)
def test_what_is_not_there_is_an_error(tmp_path: Path, function: str, reason: str) -> None:
    (result,) = agentv.score(REPLY, [{"type": "python", "function": function}], root=str(tmp_path)).evaluators
    assert result.status == "error"
    assert reason in result.details["error"]


def test_a_file_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    assert "SyntaxError" in checked(tmp_path, "def check(ctx:\n").details["error"]
    assert "ZeroDivisionError" in checked(tmp_path, "1 / 0\n").details["error"]
    assert "No module named 'lxml_of_old'" in checked(tmp_path, "import lxml_of_old\n").details["error"]
    assert checked(tmp_path, "def check(ctx):\n    return True\n").status == "pass"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    assert checked(tmp_path, "def check(ctx):\n    return True\n").status == "pass"
    code = "def check(ctx):\n    return 0.00\n"  # as long as the one before
    file = tmp_path / "checks.py"
    stamp = file.stat().st_mtime_ns
    file.write_text(code)
    os.utime(file, ns=(stamp + 1000, stamp + 1000))
    config = {"type": "python", "function": "./checks.py:check"}
    assert agentv.score(REPLY, [config], root=str(tmp_path)).status == "fail"


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name, value in (("one", True), ("two", False)):
        (tmp_path / name).mkdir()
        assert checked(tmp_path / name, f"def check(ctx):\n    return {value}\n").score == float(value)


@pytest.mark.parametrize("function", ["checks.py", "check", ":check", "./checks.py:", "a b:c", "./checks.py:a-b", ""])
def test_a_place_that_can_be_none_is_refused(function: str) -> None:
    with pytest.raises(agentv.SpecError, match="expected the place of a function"):
        agentv.score(REPLY, [{"type": "python", "function": function}])


@pytest.mark.parametrize(
    "code",
    [
        "import time\ndef check(ctx):\n    time.sleep(60)\n",
        "import asyncio\nasync def check(ctx):\n    await asyncio.sleep(60)\n",
    ],
)
def test_one_that_takes_too_long_is_an_error(tmp_path: Path, code: str) -> None:
    result = checked(tmp_path, code, timeout_s=0.2)
    assert result.details == {"error": "the check did not end within 0.2 s"}


def test_a_slow_check_holds_up_nobody(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("import time\ndef check(ctx):\n    time.sleep(0.5)\n    return True\n")
    config = {"type": "python", "function": "./checks.py:check"}

    async def race() -> int:
        work = [asyncio.create_task(agentv.ascore(REPLY, [config], root=str(tmp_path))) for _ in range(4)]
        beats = 0
        while not all(task.done() for task in work):
            await asyncio.sleep(0.01)
            beats += 1
        assert {task.result().status for task in work} == {"pass"}
        return beats

    began = time.monotonic()
    assert asyncio.run(race()) >= 5
    assert time.monotonic() - began < 60


EVAL = """
targets: [{name: t, provider: mock, reply: "It is sunny."}]
cases:
  - id: a
    input: Hi
    evaluators:
      - type: any_of
        evaluators: [{type: python, function: "./checks.py:check"}]
"""
HOSTILE = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\ndef check(ctx):\n    return True\n"


def test_loading_is_not_running_and_no_exec_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(HOSTILE)
    file = tmp_path / "a.eval.yaml"
    file.write_text(EVAL)
    load_evals([file])
    assert CliRunner().invoke(group, ["validate", str(file)]).exit_code == 0
    assert CliRunner().invoke(group, ["eval", str(file), "--dry-run"]).exit_code == 0
    refused = CliRunner().invoke(group, ["eval", str(file), "--no-exec"])
    assert refused.exit_code == 2
    assert "evaluator 'python' of case 'a' would run code of the eval's, which --no-exec forbids" in refused.output
    assert "a.eval.yaml:4:5" in refused.output
    assert not (tmp_path / "ran").exists()
    assert agentv.evaluate(file).passed
    assert (tmp_path / "ran").exists()


def test_a_file_of_the_project_serves_evals_further_down(tmp_path: Path) -> None:
    (tmp_path / "agentv.yaml").write_text("targets: [{name: t, provider: mock, reply: Hi}]\n")
    (tmp_path / "checks.py").write_text("def check(ctx):\n    return True\n")
    (tmp_path / "evals").mkdir()
    file = tmp_path / "evals" / "a.eval.yaml"
    file.write_text(EVAL.partition("\n")[2].partition("\n")[2])
    assert agentv.evaluate(file).passed


@agentv.evaluator
def max_words(ctx: agentv.Context, most: int = 80, *, exactly: bool = False) -> bool:
    """The answer has at most so many words."""
    words = len(ctx.candidate.split())
    return words == most if exactly else words <= most


@agentv.evaluator
async def sunny(ctx: agentv.Context) -> tuple[bool, str]:
    """It is sunny."""
    return "sunny" in ctx.candidate, "the answer speaks of the sun"


def test_a_decorated_function_is_an_evaluator() -> None:
    result = agentv.score(REPLY, [max_words(most=3), max_words(most=3, exactly=True, weight=2), sunny(name="sun")])
    assert [(each.name, each.type, each.status) for each in result.evaluators] == [
        ("max_words", "max_words", "pass"),
        ("max_words", "max_words", "pass"),
        ("sun", "sunny", "pass"),
    ]
    assert agentv.score(REPLY, [max_words(most=2)]).status == "fail"
    assert max_words.function(agentv.Context(response=agentv.ProviderResponse(), candidate="a b"), most=2)


def test_one_that_was_not_made_is_said_so() -> None:
    with pytest.raises(agentv.SpecError, match=r"'max_words' is a class of evaluators: write `max_words\(\)`"):
        agentv.score(REPLY, [max_words])


def test_a_decorated_function_can_be_named_in_a_file(tmp_path: Path) -> None:
    code = (
        "import agentv\n@agentv.evaluator\ndef check(ctx, most: int):\n    return len(ctx.candidate.split()) <= most\n"
    )
    assert checked(tmp_path, code, config={"most": 3}).status == "pass"
    result = checked(tmp_path, code, config={"most": "three"})
    assert result.details["error"] == "config: Expected `int`, got `str` - at `$.most`"
    assert "missing required field `most`" in checked(tmp_path, code).details["error"]


def test_options_that_would_hide_others_are_refused() -> None:
    def named(ctx: agentv.Context, weight: int) -> bool:
        return bool(ctx) and weight > 0

    def open_ended(ctx: agentv.Context, **others: int) -> bool:
        return bool(ctx) and bool(others)

    with pytest.raises(TypeError, match="'weight' is an option of every evaluator"):
        agentv.evaluator(named)
    with pytest.raises(TypeError, match="an option has a name of its own"):
        agentv.evaluator(open_ended)
