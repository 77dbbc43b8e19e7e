"""`agentv eval` on a model behind a real server that is busy, broken, slow, paid for or closed to us."""

from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from agentv.run import attempt
from tests.fakes.model_server.server import Server, running
from tests.support.command import Command, Json, Result


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "FIRST_BACKOFF_S", 0.01)


class Eval:
    """An eval of one model, and the requests that its server received."""

    def __init__(self, run: Command, server: Server, model: str, count: int, *args: str, **settings: Any) -> None:
        target = {"name": "model", "provider": "openai", "model": model, "base_url": server.url, "api_key": "k" * 20}
        check = {"type": "contains", "value": "You said"}
        cases = [{"id": f"c{at}", "input": f"question {at}", "evaluators": [check]} for at in range(count)]
        run.write("a.eval.yaml", {"targets": [{**target, **settings}], "cases": cases})
        before = len(server.seen)
        args = ("--max-concurrency", "4", *args)
        self.result: Result = run("eval", "a.eval.yaml", "--out", "results.jsonl", *args)
        self.asked = len(server.seen) - before
        self.records: list[Json] = run.records()

    @property
    def errors(self) -> list[Json]:
        return [record["error"] for record in self.records if record["status"] == "error"]


class TestTooBusy:
    def test_without_a_time_it_is_asked_again_a_little_later(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "first-limited-3", 6, retries=1)
        assert (seen.result.code, seen.errors) == (0, [])
        assert seen.asked == 6 + 3
        assert sum(record["attempts"] for record in seen.records) == 9

    def test_with_a_time_nobody_asks_before_and_the_wait_is_no_latency(self, run: Command, server: Server) -> None:
        began = monotonic()
        seen = Eval(run, server, "first-limited-shortly-1", 3)
        assert monotonic() - began >= 0.3
        assert (seen.result.code, seen.asked) == (0, 4)
        (told,) = [record for record in seen.records if record["attempts"] == 2]
        assert "429" in told["warnings"][0]
        assert told["latency_ms"] < 300

    def test_a_wait_that_is_too_long_is_an_error_at_once(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "limited-seconds", 50, max_retry_after_s=1)
        assert seen.result.code == 3
        assert seen.asked <= 4
        assert all("asks to wait 7 s, longer than `max_retry_after_s` (1 s)" in each["message"] for each in seen.errors)
        assert {each["code"] for each in seen.errors} == {"rate_limited"}


class TestRefused:
    def test_a_quota_that_is_used_up_is_not_asked_for_again(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "quota", 200)
        assert (seen.result.code, len(seen.errors)) == (3, 200)
        assert seen.asked <= 4
        assert {each["code"] for each in seen.errors} == {"quota_exhausted"}
        assert "not asked: this target's quota is exhausted, as it said before" in seen.result.out

    def test_a_wrong_key_is_not_tried_with_every_run(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "unauthorized", 200)
        assert (seen.result.code, len(seen.errors)) == (3, 200)
        assert 5 <= seen.asked <= 5 + 4
        assert {each["code"] for each in seen.errors} == {"unauthorized"}
        assert "not asked: this target has refused" in seen.result.out
        assert sum(record["attempts"] == 0 for record in seen.records) == 200 - seen.asked

    def test_a_model_that_does_not_exist_says_so(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "unknown", 1)
        assert (seen.result.code, seen.errors[0]["code"]) == (3, "not_found")


class TestBroken:
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_connection_that_is_cut_is_tried_again_and_then_an_error(
        self, run: Command, server: Server, *, stream: bool
    ) -> None:
        seen = Eval(run, server, "cut", 1, stream=stream)
        assert (seen.result.code, seen.asked) == (3, 3)
        assert (seen.errors[0]["kind"], seen.errors[0]["code"]) == ("transport", "cut_off")
        assert len(seen.records[0]["warnings"]) == 2

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_reply_that_never_ends_runs_out_of_time(self, run: Command, server: Server, *, stream: bool) -> None:
        server.hung_up.clear()
        seen = Eval(run, server, "drip", 1, stream=stream, timeout_s=0.5)
        assert (seen.result.code, seen.asked) == (3, 1)
        assert (seen.errors[0]["kind"], seen.errors[0]["message"]) == ("timeout", "no reply within 0.5 s")
        assert server.hung_up.wait(10)

    @pytest.mark.parametrize("model", ["malformed", "page", "other-object"])
    def test_what_is_no_reply_is_an_error_of_its_own_run(self, run: Command, server: Server, model: str) -> None:
        seen = Eval(run, server, model, 2)
        assert (seen.result.code, seen.asked) == (3, 2)
        assert [each["kind"] for each in seen.errors] == ["protocol"] * 2


class TestSpent:
    PRICE = {"input": 1000, "output": 1000}
    """Each reply is 19 tokens: 1.9 cents."""

    def test_when_the_money_is_spent_nothing_more_is_asked(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "echo", 50, "--max-cost", "0.05", "--max-concurrency", "1", price=self.PRICE)
        assert (seen.result.code, seen.asked) == (3, 3)
        assert "`max_cost` of $0.05 is reached ($0.0570 spent): 47 of 50 runs were not started" in seen.result.out

    def test_the_same_for_tokens_in_a_stream(self, run: Command, server: Server) -> None:
        seen = Eval(run, server, "echo", 50, "--max-tokens", "40", "--max-concurrency", "1", stream=True)
        assert (seen.result.code, seen.asked) == (3, 3)
        assert "`max_tokens` of 40 is reached (57 tokens spent): 47 of 50 runs were not started" in seen.result.out
