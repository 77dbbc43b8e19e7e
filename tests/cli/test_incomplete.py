"""Replies whose secrets were redacted, or whose output was cut, evaluated again and replayed."""

import json
import sys
from typing import Any

import pytest

from tests.support.command import Command, Json, mocked

TOKEN = "ghp_0123456789abcdefABCDEF0123456789abcd"  # noqa: S105 - planted
LEAK = {"text": f"Use {TOKEN} to log in."}
NO_LEAK = {"type": "contains", "name": "no leak", "none": [TOKEN]}
NO_TOKEN = {"type": "regex", "name": "no token", "pattern": "ghp_[A-Za-z0-9]+", "not": True}
HELPS = {"type": "contains", "name": "helps", "value": "to log in"}


def eval_of(*evaluators: Json, **target: Any) -> Json:
    return {"targets": [target or mocked(LEAK)], "cases": [{"id": "a", "input": "Hi", "evaluators": list(evaluators)}]}


def statuses(record: Json) -> dict[str, str]:
    return {result["name"]: result["status"] for result in record["evaluators"]}


@pytest.fixture
def leaked(run: Command) -> Command:
    """A stored execution whose agent leaked a token."""
    run.write("a.eval.yaml", eval_of(NO_TOKEN, HELPS))
    assert run("eval", "a.eval.yaml").code == 1
    return run


def test_rescoring_never_turns_a_leak_into_a_pass(leaked: Command) -> None:
    result = leaked("rescore", "--json")
    assert statuses(result.lines[0]) == {"no token": "error", "helps": "pass"}
    assert result.code == 3
    assert TOKEN not in result.out


def test_rescoring_with_an_eval_file_does_not_either(leaked: Command) -> None:
    leaked.write("b.eval.yaml", eval_of(NO_LEAK, NO_TOKEN, HELPS))
    result = leaked("rescore", "--eval", "b.eval.yaml", "--json")
    assert statuses(result.lines[0]) == {"no leak": "error", "no token": "error", "helps": "pass"}
    assert "secrets in it were redacted" in result.out


def test_an_evaluator_whose_own_secrets_were_redacted_is_undecided(run: Command) -> None:
    # In a pattern, `[redacted]` would mean any of these letters.
    pattern = {"type": "regex", "name": "exact token", "pattern": TOKEN}
    run.write("a.eval.yaml", eval_of(pattern, HELPS, **mocked({"text": "A letter to log in."})))
    assert run("eval", "a.eval.yaml").code == 1
    result = run("rescore", "--json")
    assert statuses(result.lines[0]) == {"exact token": "error", "helps": "pass"}
    assert "name the eval with --eval" in result.out


def test_a_replayed_export_is_undecided_too(leaked: Command) -> None:
    exported = leaked("runs", "export", "last").out.splitlines()[1]
    leaked.write("replies.jsonl", json.dumps({"id": "a", **json.loads(exported)["response"]}) + "\n")
    leaked.write("b.eval.yaml", eval_of(NO_LEAK, HELPS, name="recorded", provider="replay", file="replies.jsonl"))
    result = leaked("eval", "b.eval.yaml", "--json")
    assert statuses(result.lines[0]) == {"no leak": "error", "helps": "pass"}


def test_output_beyond_the_limit_is_not_taken_as_absent(run: Command) -> None:
    program = f"print('to log in' + 'x' * 500 + {TOKEN!r} + 'x' * 5000)"
    target = {"name": "p", "provider": "cli", "command": [sys.executable, "-c", program], "max_output_bytes": 400}
    run.write(
        "a.eval.yaml",
        eval_of({**NO_LEAK, "none": ["failed"]}, {**HELPS, "not": True, "name": "no help"}, HELPS, **target),
    )
    result = run("eval", "a.eval.yaml", "--json")
    assert statuses(result.lines[0]) == {"no leak": "error", "no help": "fail", "helps": "pass"}
    assert any("its middle was left out" in warning for warning in result.lines[0]["warnings"])
    again = run("rescore", "--json")
    assert statuses(again.lines[0]) == {"no leak": "error", "no help": "fail", "helps": "pass"}


def test_a_program_that_evaluates_is_told_and_undecided_unless_it_says_that_it_handles_it(leaked: Command) -> None:
    code = "import json, sys; print(json.dumps({'score': bool(json.load(sys.stdin)['incomplete'])}))"
    check = {"type": "code", "command": [sys.executable, "-c", code]}
    told = {**check, "name": "told", "accepts_incomplete": True}
    leaked.write("b.eval.yaml", eval_of(check, told))
    result = leaked("rescore", "--eval", "b.eval.yaml", "--json")
    assert statuses(result.lines[0]) == {"code": "error", "told": "pass"}


def test_rescoring_with_a_secret_in_the_eval_file_writes_it_nowhere(run: Command) -> None:
    secret = "correct-horse-battery"  # noqa: S105 - planted
    program = "import os; print('It is', os.environ['API_KEY'])"
    target = {"name": "p", "provider": "cli", "command": [sys.executable, "-c", program], "env": ["API_KEY"]}
    run.write("a.eval.yaml", eval_of({"type": "contains", "name": "no leak", "none": [secret]}, **target))
    assert run("eval", "a.eval.yaml", env={"API_KEY": secret}).code == 1
    result = run("rescore", "--eval", "a.eval.yaml", "--json", env={"API_KEY": secret})
    assert statuses(result.lines[0]) == {"no leak": "error"}
    held = b"".join(path.read_bytes() for path in (run.folder / ".agentv").iterdir())
    assert secret not in result.out + result.err
    assert secret.encode() not in held
