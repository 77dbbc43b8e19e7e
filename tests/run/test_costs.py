"""Limits of costs and tokens: counting, stopping, and messages."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import agentv
from agentv.api.evaluate import function_target
from agentv.model.response import Price, ProviderResponse, TokensUsage
from agentv.protocols import ProviderSettings
from agentv.run.costs import Spending
from tests.support.command import Command

CHECK = {"type": "contains", "value": "done"}


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """`agentv` in an empty folder."""
    folder, temporary = tmp_path / "project", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    return Command(folder, temporary)


def eval_of(count: int, **more: Any) -> dict[str, Any]:
    return {"cases": [{"id": f"c{at}", "input": "x", "evaluators": [CHECK]} for at in range(count)], **more}


def reply(**fields: Any) -> dict[str, Any]:
    return {"text": "done", **fields}


def usage(inputs: int, outputs: int, **more: int) -> dict[str, int]:
    return {"input_tokens": inputs, "output_tokens": outputs, "total_tokens": inputs + outputs, **more}


def ran(count: int, answer: Any, **options: Any) -> agentv.Execution:
    return agentv.evaluate(eval_of(count), target={"provider": "mock", "reply": answer}, **options)


class TestCost:
    def test_a_reply_with_usage_and_a_known_model_gets_its_cost(self) -> None:
        answer = reply(tokens_usage=usage(1000, 100), metadata={"model": "gpt-4o-2024-08-06"})
        (record,) = ran(1, answer).results
        assert record.cost_usd == pytest.approx(1000 * 2.5e-6 + 100 * 10e-6)

    def test_a_model_beside_the_other_fields_is_read_too(self) -> None:
        target = function_target(lambda _: reply(tokens_usage=usage(1000, 0), model="gpt-4o"))
        (record,) = agentv.evaluate(eval_of(1), target=target).results
        assert record.cost_usd == pytest.approx(0.0025)

    def test_what_the_agent_says_itself_is_left_alone(self) -> None:
        answer = reply(tokens_usage=usage(1000, 100), metadata={"model": "gpt-4o"}, cost_usd=0.5)
        (record,) = ran(1, answer).results
        assert record.cost_usd == 0.5

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"tokens_usage": usage(1000, 100)},
            {"metadata": {"model": "gpt-4o"}},
            {"tokens_usage": usage(1000, 100), "metadata": {"model": 3}},
        ],
    )
    def test_without_usage_or_a_model_there_is_none_and_nothing_to_say(self, fields: dict[str, Any]) -> None:
        execution = ran(2, reply(**fields))
        assert [record.cost_usd for record in execution.results] == [None, None]
        assert execution.summary.warnings is UNSET

    def test_an_unknown_model_has_no_cost_and_that_is_said_once(self) -> None:
        execution = ran(50, reply(tokens_usage=usage(1000, 100), metadata={"model": "house-model"}))
        assert {record.cost_usd for record in execution.results} == {None}
        assert execution.summary.warnings is not UNSET
        (warning,) = execution.summary.warnings
        assert warning.startswith("no price is known for 'house-model': its cost is null")
        assert execution.passed

    def test_a_targets_own_price_needs_no_model(self) -> None:
        target = {
            "provider": "mock",
            "reply": reply(tokens_usage=usage(1_000_000, 0), metadata={"model": "gpt-4o"}),
            "price": {"input": 7, "output": 1},
        }
        (record,) = agentv.evaluate(eval_of(1), target=target).results
        assert record.cost_usd == 7

    def test_the_setting_of_a_target_is_its_model_where_the_reply_names_none(self) -> None:
        account = Spending().make_cost_counter(ProviderSettings(model="gpt-4o"))
        used = TokensUsage(input_tokens=1_000_000, output_tokens=0)
        assert account(ProviderResponse(tokens_usage=used)).cost_usd == 2.5
        other = ProviderResponse(tokens_usage=used, metadata={"model": "gpt-4.1"})
        assert account(other).cost_usd == 2.0
        renamed = ProviderResponse(tokens_usage=used, metadata={"model": "deployment-7"})
        assert account(renamed).cost_usd == 2.5

    def test_prices_of_the_project_come_before_the_table(self, run: Command) -> None:
        run.write(
            "agentv.yaml", {"prices": {"gpt-4o": {"input": 100, "output": 100}, "ours-*": {"input": 3, "output": 3}}}
        )
        replies = [
            reply(tokens_usage=usage(500_000, 500_000), metadata={"model": name}) for name in ("gpt-4o", "ours-7")
        ]
        run.write("a.eval.yaml", eval_of(2, targets=[{"name": "m", "provider": "mock", "reply": replies}]))
        result = run("eval", "a.eval.yaml", "--json")
        assert [line["cost_usd"] for line in result.lines[:2]] == [100, 3]

    def test_a_wrong_price_is_an_authoring_error_with_its_place(self, run: Command) -> None:
        run.write("agentv.yaml", "prices:\n  house: {input: 1, outptu: 2}\n")
        run.write("a.eval.yaml", eval_of(1, targets=[{"name": "m", "provider": "mock"}]))
        result = run("eval", "a.eval.yaml")
        assert result.code == 2
        assert "agentv.yaml:2:" in result.err
        assert "did you mean 'output'" in result.err

    def test_every_attempt_is_counted_and_a_failure_too(self) -> None:
        spending = Spending(max_cost=1.0)
        account = spending.make_cost_counter(ProviderSettings(price=Price(input=1, output=1)))
        used = TokensUsage(input_tokens=250_000, output_tokens=0, total_tokens=250_000)
        for success in (True, False, True):
            account(ProviderResponse(success=success, tokens_usage=used))
        assert (spending.cost_usd, spending.tokens, spending.reached) == (0.75, 750_000, None)
        account(ProviderResponse(tokens_usage=used))
        assert spending.reached == "`max_cost` of $1 is reached"


class TestLimits:
    def test_when_the_money_is_spent_nothing_more_is_started_and_it_is_an_error(self) -> None:
        execution = ran(100, reply(cost_usd=0.5), max_cost=5, max_concurrency=1)
        summary = execution.summary
        assert (summary.runs, summary.planned, summary.passed) == (10, 100, 10)
        assert (summary.status, summary.exit_code) == ("error", 3)
        assert summary.stopped == "`max_cost` of $5 is reached ($5.0000 spent): 90 of 100 runs were not started"

    def test_the_same_for_tokens(self) -> None:
        execution = ran(100, reply(tokens_usage=usage(90, 10)), max_tokens=1000, max_concurrency=1)
        assert execution.summary.runs == 10
        words = "`max_tokens` of 1,000 is reached (1,000 tokens spent): 90 of 100 runs were not started"
        assert execution.summary.stopped == words

    def test_what_is_under_way_finishes_and_counts(self) -> None:
        async def agent(prompt: str) -> Any:
            await asyncio.sleep(0.02)
            return reply(cost_usd=1.0, text=f"done {prompt}")

        execution = agentv.evaluate(eval_of(50), target=agent, max_cost=1.5, max_concurrency=5)
        assert 2 <= execution.summary.runs <= 10
        assert execution.summary.cost_usd == execution.summary.runs
        assert execution.summary.passed == execution.summary.runs

    def test_who_waits_for_a_turn_is_sent_away(self) -> None:
        target = function_target(lambda _: reply(cost_usd=1.0), requests_per_minute=1)
        execution = agentv.evaluate(eval_of(10), target=target, max_cost=0.5, max_concurrency=5)
        assert execution.summary.runs == 1

    def test_a_limit_that_the_last_run_reaches_stopped_nothing(self) -> None:
        execution = ran(10, reply(cost_usd=0.5), max_cost=5)
        assert execution.passed
        assert execution.summary.stopped is UNSET

    def test_a_failure_that_could_be_measured_does_not_hide_what_was_not(self) -> None:
        execution = ran(10, reply(text="wrong", cost_usd=1.0), max_cost=2, max_concurrency=1)
        assert (execution.summary.failed, execution.summary.status, execution.summary.exit_code) == (2, "error", 3)

    def test_replies_of_unknown_cost_are_not_seen_and_that_is_said(self) -> None:
        execution = ran(20, [reply(cost_usd=0.01), reply(), reply()], max_cost=1, max_tokens=100)
        assert execution.passed
        assert execution.summary.warnings is not UNSET
        costs, tokens = execution.summary.warnings
        assert costs == "`max_cost` did not see 13 replies whose cost is not known"
        assert tokens == "`max_tokens` did not see 20 replies without a count of tokens"

    @pytest.mark.parametrize("odd", [float("nan"), float("inf"), -100.0, "much"])
    def test_what_is_no_amount_neither_lifts_a_limit_nor_reaches_it(self, odd: Any) -> None:
        costs = iter([odd, *[1.0] * 9])

        def agent(prompt: str) -> ProviderResponse:
            return ProviderResponse(text=f"{prompt} done", cost_usd=next(costs), latency_ms=odd)

        execution = agentv.evaluate(eval_of(10), target=agent, max_cost=3, max_concurrency=1)
        assert (execution.summary.runs, execution.summary.cost_usd) == (4, 3.0)
        first = execution.results[0]
        assert first.cost_usd is None
        assert first.latency_ms is not None
        assert f"cost_usd: expected a number of at least 0, got {odd!r}" in first.warnings

    @pytest.mark.parametrize("wrong", [0, -1, "much"])
    def test_a_limit_must_be_a_positive_number(self, wrong: Any) -> None:
        with pytest.raises(agentv.SpecError, match="max_cost"):
            ran(1, reply(), max_cost=wrong)


class TestCommandLine:
    @pytest.fixture
    def project(self, run: Command) -> Command:
        answer = reply(cost_usd=0.5, tokens_usage=usage(90, 10))
        run.write("a.eval.yaml", eval_of(20, targets=[{"name": "m", "provider": "mock", "reply": answer}]))
        return run

    def test_the_terminal_names_the_limit_and_what_was_not_started(self, project: Command) -> None:
        result = project("eval", "a.eval.yaml", "--max-cost", "2.00", "--max-concurrency", "1")
        assert result.code == 3
        assert "stopped: `max_cost` of $2 is reached ($2.0000 spent): 16 of 20 runs were not started" in result.out
        assert "16 not run" in result.out

    def test_programs_find_it_in_the_summary(self, project: Command) -> None:
        result = project("eval", "a.eval.yaml", "--max-tokens", "300", "--max-concurrency", "1", "--json")
        assert result.code == 3
        *records, summary = result.lines
        assert len(records) == 3
        assert summary["stopped"].startswith("`max_tokens` of 300 is reached")

    def test_files_may_say_so_too_and_the_command_line_comes_first(self, project: Command) -> None:
        project.write("agentv.yaml", {"defaults": {"max_cost": 1, "max_concurrency": 1}})
        assert json.loads(project("eval", "a.eval.yaml", "--json").out.splitlines()[-1])["runs"] == 2
        result = project("eval", "a.eval.yaml", "--json", "--max-cost", "3")
        assert result.lines[-1]["runs"] == 6

    @pytest.mark.parametrize("given", ["0", "-1", "nan", "free"])
    def test_what_is_no_sum_of_money_is_refused(self, project: Command, given: str) -> None:
        result = project("eval", "a.eval.yaml", f"--max-cost={given}")
        assert result.code == 2

    def test_what_is_said_of_unknown_prices_is_on_the_terminal_once(self, run: Command) -> None:
        answer = reply(tokens_usage=usage(1, 1), metadata={"model": "house"})
        run.write("a.eval.yaml", eval_of(20, targets=[{"name": "m", "provider": "mock", "reply": answer}]))
        result = run("eval", "a.eval.yaml")
        assert result.out.count("no price is known for 'house'") == 1
