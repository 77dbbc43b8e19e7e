"""Judge client: cache, limits, redaction and costs."""

import asyncio
import json
import sqlite3
import stat
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.api.evaluate import function_target
from agentv.evals import Eval, Target
from agentv.evaluators.judge.prompt import find_nonce
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.protocols import OpenProvider
from agentv.providers.base import ProviderBase
from agentv.redaction import Redactor
from agentv.run.judges import Judges, JudgeTarget
from agentv.run.options import RunOptions
from agentv.stores.sqlite import SqliteJudgeCache
from tests.fakes.judges.program import asked, judge_program
from tests.support.command import Command, command_in

CHECK = {"name": "right", "type": "llm_judge", "rubric": ["It names Paris."]}
Json = dict[str, Any]


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return command_in(tmp_path)


def write(run: Command, *answers: str, check: Json | None = None, judge: Json | None = None, **more: Any) -> None:
    cases = [
        {"id": f"c{at}", "input": "The capital of France?", "evaluators": [check or CHECK]}
        for at in range(len(answers))
    ]
    agent = {"name": "agent", "provider": "mock", "reply": list(answers)}
    run.write(
        "a.eval.yaml",
        {"targets": [agent, judge_program(run.folder, **(judge or {}))], "judge": "judge", "cases": cases, **more},
    )


def results(run: Command, *options: str, env: dict[str, str] | None = None) -> tuple[list[Json], Json]:
    done = run("eval", "a.eval.yaml", "--json", *options, env=env)
    *records, summary = done.lines
    assert records, done.err
    return sorted(records, key=lambda record: str(record["case_id"])), summary


def test_a_question_that_was_answered_before_costs_nothing(run: Command) -> None:
    write(run, "It is Paris.", "It is Rome.")
    first, total = results(run)
    assert [record["status"] for record in first] == ["pass", "fail"]
    assert total["judges"]["judge"] == {
        "calls": 2,
        "cached": 0,
        "tokens_usage": total["judges"]["judge"]["tokens_usage"],
        "cost_usd": 0.5,
        "findings": 2,
        "reported_cost": 2,
    }
    assert total["cost_usd"] is None, "the agent's own"
    again, total = results(run)
    assert [record["status"] for record in again] == ["pass", "fail"]
    assert total["judges"]["judge"]["cached"] == 2
    assert total["judges"]["judge"]["cost_usd"] == 0.0
    assert total["judges"]["judge"]["tokens_usage"] is None
    assert len(asked(run.folder)) == 2


def test_no_cache_asks_again(run: Command) -> None:
    write(run, "It is Paris.")
    results(run)
    _, total = results(run, "--no-cache")
    assert total["judges"]["judge"]["cached"] == 0
    assert len(asked(run.folder)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"check": {**CHECK, "rubric": ["It names Paris, France."]}},
        {"judge": {"env": ["REPLY", "OTHER"]}},
        {"answer": "Surely Paris."},
    ],
)
def test_anything_else_is_another_question(run: Command, change: Json) -> None:
    write(run, "It is Paris.")
    results(run)
    write(run, change.pop("answer", "It is Paris."), **change)
    _, total = results(run)
    assert total["judges"]["judge"]["cached"] == 0


def test_settings_that_change_no_reply_are_no_other_question(run: Command) -> None:
    write(run, "It is Paris.")
    results(run)
    write(run, "It is Paris.", judge={"timeout_s": 33, "retries": 0, "max_concurrency": 1})
    _, total = results(run)
    assert total["judges"]["judge"]["cached"] == 1


def test_what_could_not_be_read_is_not_remembered(run: Command) -> None:
    write(run, "BABBLE Paris")
    first, _ = results(run)
    assert first[0]["status"] == "error"
    assert first[0]["evaluators"][0]["details"]["judge"]["cost_usd"] == 0.5, "what it cost is told all the same"
    results(run)
    assert len(asked(run.folder)) == 4


def test_a_verdict_that_took_two_tries_is_remembered_with_both(run: Command) -> None:
    write(run, "STUTTER Paris")
    for known in (0, 2):
        (record,), _ = results(run)
        assert record["status"] == "pass"
        used = record["evaluators"][0]["details"]["judge"]
        assert (used["calls"], used["cached"]) == (2, known)
    assert len(asked(run.folder)) == 2


def test_the_limit_of_the_whole_execution_counts_judges_too(run: Command) -> None:
    write(run, "It is Paris.", "Paris!", "Paris?", "Paris, I think.")
    done = run("eval", "a.eval.yaml", "--max-cost", "0.4", "--max-concurrency", "1", "--json")
    assert done.code == 3
    *records, summary = done.lines
    assert [record["status"] for record in records] == ["pass", "pass"]
    assert "2 of 4 runs were not started" in summary["stopped"]


def test_a_judge_inside_of_another_evaluator_is_counted_too(run: Command) -> None:
    other = {"type": "contains", "all": ["Paris"]}
    write(run, "It is Paris.", check={"type": "all_of", "evaluators": [other, CHECK]})
    _, total = results(run)
    assert total["judges"]["judge"]["calls"] == 1


def test_a_memory_that_is_damaged_is_no_reason_to_stop(run: Command) -> None:
    write(run, "It is Paris.")
    results(run)
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db, db:
        db.execute("UPDATE judge_replies SET reply = x'00'")
    (record,), total = results(run)
    assert record["status"] == "pass"
    assert total["judges"]["judge"]["cached"] == 0


def test_without_a_store_nothing_is_left_behind(run: Command) -> None:
    write(run, "It is Paris.")
    results(run, "--no-store")
    results(run, "--no-store")
    assert len(asked(run.folder)) == 2
    assert not (run.folder / ".agentv").exists()


def test_the_memory_is_private_and_knows_no_secret(run: Command) -> None:
    secret = "hunter2-hunter2-hunter2"  # noqa: S105 - nobody's
    write(run, f"It is Paris, and the key is {secret}.", judge={"env": ["REPLY", "JUDGE_KEY"]})
    run.write("agentv.yaml", {})
    (record,), _ = results(run, "--include-messages", env={"JUDGE_KEY": secret})
    assert record["status"] == "pass"
    (prompt,) = asked(run.folder)
    assert secret not in prompt
    assert "It is Paris, and the key is [redacted:JUDGE_KEY]." in prompt
    for path in run.folder.rglob("*"):
        if path.is_file() and path.name not in ("a.eval.yaml", "asked.jsonl"):
            assert secret.encode() not in path.read_bytes(), path
    assert stat.S_IMODE((run.folder / ".agentv" / "runs.db").stat().st_mode) == 0o600


def test_max_judge_cost_stops_the_judge_and_not_the_agents(run: Command) -> None:
    write(run, "It is Paris.", "Paris!", "Paris?", "Paris, I think.")
    records, total = results(run, "--max-judge-cost", "0.5", "--max-concurrency", "1")
    assert [record["status"] for record in records] == ["pass", "pass", "error", "error"]
    assert total["runs"] == 4
    assert total["judges"]["judge"]["cost_usd"] == 0.5
    reason = records[2]["evaluators"][0]["details"]["error"]
    assert reason == "not asked: `max_judge_cost` of $0.5 is reached ($0.5000 spent on judges)"


def test_a_limit_that_cannot_be_kept_is_not_pretended_to_be(run: Command) -> None:
    write(run, "It is Paris.", "Paris!")
    records, _ = results(run, "--max-judge-cost", "5", "--max-concurrency", "1", env={"REPLY": "{}"})
    assert [record["status"] for record in records] == ["pass", "error"]
    assert "reports no cost of its replies" in records[1]["evaluators"][0]["details"]["error"]


def test_a_judge_that_hangs_is_an_error_of_that_run_alone(run: Command) -> None:
    write(run, "HANG Paris", "It is Paris.", judge={"timeout_s": 1.5, "retries": 0})
    records, _ = results(run)
    ends = {record["case_id"]: record for record in records}
    assert (ends["c0"]["status"], ends["c1"]["status"]) == ("error", "pass")
    assert "no reply within 1.5 s" in ends["c0"]["evaluators"][0]["details"]["error"]


def test_no_exec_refuses_a_judge_that_is_a_program(run: Command) -> None:
    write(run, "It is Paris.")
    done = run("eval", "a.eval.yaml", "--no-exec")
    assert done.code == 2
    assert "target 'judge' would run a program, which --no-exec forbids" in done.err


def test_the_key_of_a_judge_that_no_selected_case_asks_is_not_needed(run: Command) -> None:
    write(run, "It is Paris.", judge={"command": ["judge", "${NO_SUCH_KEY}"]})
    suite = (run.folder / "a.eval.yaml").read_text()
    plain = "- {id: plain, input: Hi, evaluators: [{type: contains, all: [Paris]}]}\n"
    run.write("a.eval.yaml", suite.replace("cases:\n", f"cases:\n{plain}"))
    assert run("eval", "a.eval.yaml").code == 2
    assert run("eval", "a.eval.yaml", "--case", "plain").code == 0


def test_the_sums_are_on_the_terminal_and_on_the_page(run: Command) -> None:
    write(run, "It is Paris.")
    assert "judge judge: asked 1 time · tokens " in run("eval", "a.eval.yaml", "--out", "page.md").out
    assert "\nJudge `judge`: asked 1 time · tokens " in (run.folder / "page.md").read_text()
    assert "judge judge: asked 1 time, 1 known already · cost $0.0000" in run("eval", "a.eval.yaml").out


class Notes(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Judge that records its requests."""

    provider: str = "notes"

    async def invoke(self, request: Request) -> ProviderResponse:
        self.__dict__.setdefault("asked", []).append(request.input_messages)
        return ProviderResponse(text=f"answer {len(self.__dict__['asked'])}")


def test_all_of_a_message_is_cleaned_sent_and_remembered_by() -> None:
    """Given messages with calls and pictures, a secret in a call is taken out, and another call is another question."""
    judge, key = Notes(), ("", "judge")
    judges = Judges(
        {key: JudgeTarget(key, b"settings")},
        {key: OpenProvider.of(judge)},
        Redactor({"TOKEN": "sesame-4f7c19d2"}),
        RunOptions(),
    )
    ask = judges.for_eval(Eval(id="", cases=(), judge="judge"))
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}

    def messages(city: str) -> list[Message]:
        call = ToolCall(tool="login", input={"key": "sesame-4f7c19d2", "city": city}, output="sesame-4f7c19d2")
        asked = Message(role="user", content=[{"type": "text", "text": "Was sesame-4f7c19d2 used?"}, picture])
        return [Message(role="assistant", content=None, tool_calls=(call,)), asked]

    async def scene() -> list[str]:
        return [(await ask(None, messages(city))).text for city in ("Paris", "Rome", "Paris")]

    assert asyncio.run(scene()) == ["answer 1", "answer 2", "answer 1"]
    (did, question), _ = judge.__dict__["asked"]
    (call,) = did.tool_calls
    assert (call.tool, call.input, call.output) == (
        "login",
        {"key": "[redacted:TOKEN]", "city": "Paris"},
        "[redacted:TOKEN]",
    )
    assert question.content == [{"type": "text", "text": "Was [redacted:TOKEN] used?"}, picture]


def test_a_function_of_the_user_s_asks_the_judge_that_it_names(run: Command) -> None:
    code = """
from agentv import Message
async def check(ctx):
    reply = await ctx.ask("judge", [Message(role="user", content=f"{ctx.candidate}?")])
    return reply.text == "It is Paris.??", reply.text
"""
    (run.folder / "checks.py").write_text(code)
    write(run, "It is Paris.", check={"type": "python", "function": "./checks.py:check", "judge": "echo"})
    assert "there is no target 'echo'" in run("eval", "a.eval.yaml").err
    (run.folder / "echo.py").write_text(
        "import json, sys\nprint(json.load(sys.stdin)['input_messages'][-1]['content'] + '?')\n"
    )
    judge = {"name": "judge", "command": [sys.executable, "-S", "-E", "echo.py"]}
    write(run, "It is Paris.", check={"type": "python", "function": "./checks.py:check", "judge": "judge"}, judge=judge)
    (record,), _ = results(run)
    assert (record["status"], record["target"]) == ("pass", "agent"), record


class Crowd:
    """Judge that counts concurrent requests."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, prompt: str) -> str:
        import asyncio  # noqa: PLC0415 - only here

        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        items = [{"id": "1", "met": True, "quote": "Paris", "reason": ""}]
        return json.dumps({"verdict": find_nonce(prompt), "items": items})


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3)])
def test_no_more_ask_a_judge_at_once_than_it_takes(limit: int, most: int) -> None:
    from agentv.api.evaluate import function_target  # noqa: PLC0415 - only here

    crowd = Crowd()
    judge = function_target(crowd, name="crowd", max_concurrency=limit)
    suite = {"cases": [{"id": f"{at}", "input": "?", "evaluators": [CHECK]} for at in range(12)]}
    done = agentv.evaluate(suite, target=lambda _: "Paris", judge=judge, max_concurrency=12)
    assert done.passed
    assert crowd.most == most


def test_from_python_what_is_remembered_is_used_and_nothing_is_written(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(run, "It is Paris.", "It is Rome.")
    monkeypatch.chdir(run.folder)
    assert agentv.evaluate("a.eval.yaml").summary.failed == 1
    assert not (run.folder / ".agentv").exists()
    results(run)
    before = len(asked(run.folder))
    execution = agentv.evaluate("a.eval.yaml")
    assert len(asked(run.folder)) == before
    judges = execution.summary.judges
    assert isinstance(judges, dict)
    assert judges["judge"].cached == 2


def test_two_processes_share_one_memory(tmp_path: Path) -> None:
    one, two = SqliteJudgeCache(tmp_path / "runs.db"), SqliteJudgeCache(tmp_path / "runs.db")
    assert one.secret == two.secret
    assert len(one.secret) == 32
    one.put("key", b"reply")
    assert two.get("key") == b"reply"
    assert two.get("other") is None
    two.put("key", b"newer")
    assert one.get("key") == b"newer"
    one.close()
    two.close()


class Batch(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Batch provider without a limit."""

    provider: str = "batch"
    batch_size: int = 8

    async def invoke_many(self, requests: Sequence[agentv.Request]) -> list[agentv.ProviderResponse]:
        return [agentv.ProviderResponse(text="Paris") for _ in requests]


def test_runs_that_came_in_one_batch_do_not_wait_for_each_others_judges() -> None:
    crowd = Crowd()
    suite = {"cases": [{"id": f"{at}", "input": "?", "evaluators": [CHECK]} for at in range(8)]}
    target = Target("batch", "batch", {}, instance=Batch())
    done = agentv.evaluate(suite, target=target, judge=crowd, max_concurrency=4)
    assert done.passed
    assert [record.case_id for record in done.results] == [f"{at}" for at in range(8)]
    assert crowd.most == 4, "as many as the execution runs at once"


def test_scoring_a_kept_run_again_costs_nothing_until_the_rubric_changes(run: Command) -> None:
    write(run, "It is Paris.", "It is Rome.")
    judge = {"targets": [judge_program(run.folder)], "judge": "judge"}
    run.write("agentv.yaml", judge)
    assert run("eval", "a.eval.yaml").code == 1
    before = len(asked(run.folder))
    for more in ((), ("--eval", "a.eval.yaml")):
        *_, total = run("rescore", "--json", *more).lines
        assert (total["passed"], total["failed"], total["judges"]["judge"]["cached"]) == (1, 1, 2)
    assert len(asked(run.folder)) == before
    write(run, "It is Paris.", "It is Rome.", check={**CHECK, "rubric": ["It names the capital."]})
    *_, total = run("rescore", "--json", "--eval", "a.eval.yaml").lines
    assert total["judges"]["judge"]["cached"] == 0
    assert len(asked(run.folder)) == before + 2


def test_a_judge_that_only_the_eval_knows_is_found_with_the_eval(run: Command) -> None:
    write(run, "It is Paris.")
    run("eval", "a.eval.yaml")
    done = run("rescore")
    assert done.code == 2
    assert "case 'c0', evaluators[0]: no judge" in done.err
    assert "name the eval, which may know more targets, with --eval" in done.err
    assert run("rescore", "--eval", "a.eval.yaml").code == 0


def test_a_target_that_is_tested_and_judges_is_asked_no_more_often_than_it_allows() -> None:
    asked: list[int] = []
    now = 0

    async def both(prompt: str) -> str:
        nonlocal now
        now += 1
        asked.append(now)
        await asyncio.sleep(0.002)
        now -= 1
        return prompt[:10]

    target = function_target(both, max_concurrency=1)
    judge = {"type": "llm_judge", "criterion": "It is polite."}
    cases = [{"id": str(number), "input": "Hello?", "evaluators": [judge]} for number in range(6)]
    agentv.evaluate({"cases": cases}, target=target, judge=target, max_concurrency=6)
    assert len(asked) > 6, "the judge was asked, too"
    assert max(asked) == 1
