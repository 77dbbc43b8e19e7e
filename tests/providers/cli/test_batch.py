"""Programs that answer many cases in one process: a line each, found by id, and nobody pays for another's mistake."""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.process import orphans
from agentv.protocols import BatchSession
from agentv.providers.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are shell scripts")

PATIENCE = 30.0
ECHO = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], "text": request["input_messages"][-1]["content"]}))
"""


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither a process nor a workspace."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = set(orphans._children())  # noqa: SLF001 - the same view of the world
    yield
    assert set(orphans._children()) <= before  # noqa: SLF001 - as above
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "evals"
    made.mkdir()
    return made


def ask(*ids: str, **options: Any) -> list[Request]:
    return [
        Request(
            id=each, input_messages=(Message(role="user", content=f"{each}?"),), **options, repeat=ids[:at].count(each)
        )
        for at, each in enumerate(ids)
    ]


async def invoke_async(provider: Cli, folder: Path, requests: Sequence[Request]) -> Sequence[ProviderResponse]:
    assert provider.check("target") == []
    session = await provider.open(Scope(root=str(folder), folder=str(folder)))
    assert isinstance(session, BatchSession)
    try:
        return await session.invoke_many(requests)
    finally:
        await session.close()


def batch(folder: Path, *command: str, requests: Sequence[Request] = (), **options: Any) -> Sequence[ProviderResponse]:
    provider = Cli(name="agent", mode="batch", command=command, **options)
    return asyncio.run(invoke_async(provider, folder, requests or ask("a", "b", "c")))


def printing(folder: Path, *lines: Any, then: str = "", **options: Any) -> Sequence[ProviderResponse]:
    """The replies of a program that prints these lines."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "printed").write_text("\n".join(texts) + "\n")
    return batch(folder, "sh", "-c", f"cat >/dev/null; cat printed; {then}", **options)


def replies(*ids: str) -> list[dict[str, str]]:
    return [{"id": each, "text": each.upper()} for each in ids]


def error_of(response: ProviderResponse) -> tuple[str, str, bool]:
    assert not response.success
    assert response.error is not None
    return response.error.kind, response.error.message, response.error.retryable


# What the program is told


def test_requests_are_lines_on_stdin(folder: Path) -> None:
    batch(folder, "sh", "-c", "cat > told", requests=ask("a", "b", vars={"n": 1}, attempt=2, thread_id="t"))
    assert [json.loads(line) for line in (folder / "told").read_text().splitlines()] == [
        {
            "id": each,
            "case_id": each,
            "input_messages": [{"role": "user", "content": f"{each}?"}],
            "new_messages": [{"role": "user", "content": f"{each}?"}],
            "turn": 1,
            "conversation_id": "",
            "vars": {"n": 1},
            "attempt": 2,
            "thread_id": "t",
        }
        for each in "ab"
    ]


def test_requests_are_in_the_input_file_and_stdin_is_empty(folder: Path) -> None:
    batch(folder, "sh", "-c", 'cat > told; cat "$1" >> told; echo "$1" > name', "sh", "{input_file}")
    assert [json.loads(line)["id"] for line in (folder / "told").read_text().splitlines()] == ["a", "b", "c"]
    assert (folder / "name").read_text().endswith("requests.jsonl\n")


def test_repetitions_of_a_case_have_ids_of_their_own(folder: Path) -> None:
    found = batch(folder, sys.executable, "-c", ECHO, requests=ask("a", "a", "a#2", "a"))
    assert [response.text for response in found] == ["a?", "a?", "a#2?", "a?"]
    batch(folder, "sh", "-c", "cat > told", requests=ask("a", "a", "a#2", "a"))
    told = [json.loads(line) for line in (folder / "told").read_text().splitlines()]
    assert [(each["id"], each["case_id"]) for each in told] == [
        ("a", "a"),
        ("a#2", "a"),
        ("a#2#2", "a#2"),
        ("a#3", "a"),
    ]


def test_ids_that_no_program_could_send_back_as_they_are(folder: Path) -> None:
    found = batch(folder, sys.executable, "-c", ECHO, requests=ask("é\ud800", "\0", "a\nb", 'q"\\'))
    assert [response.success for response in found] == [True] * 4


# What is made of its lines


def test_every_field_of_a_reply(folder: Path) -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "search"}]}
    found = printing(
        folder,
        {"id": "c", "text": "C", "trace": [{"type": "tool_call", "name": "look"}], "usage": {"input_tokens": 3}},
        {"output_messages": [message], "id": "a", "latency_ms": 5},
        {"id": "b", "text": "B", "traceRef": "trace.json", "extra": 1},
    )
    assert [response.text for response in found] == ["Hi", "B", "C"]
    assert found[0].output_messages is not None
    assert found[0].output_messages[0].tool_calls[0].tool == "search"
    assert [response.latency_ms for response in found] == [5, None, None]
    assert found[1].trace_ref == "trace.json"
    assert found[1].metadata == {"extra": 1}
    assert found[2].trace is not None
    assert found[2].tokens_usage is not None


def test_error_in_a_reply_is_its_own(folder: Path) -> None:
    failed = {"id": "b", "error": {"message": "busy", "retryable": True}}
    found = printing(folder, *replies("a", "c"), failed)
    assert [response.success for response in found] == [True, False, True]
    assert error_of(found[1]) == ("agent", "busy", True)


def test_output_file(folder: Path) -> None:
    script = 'cat > /dev/null; echo log; cp printed "$1"'
    (folder / "printed").write_text("".join(json.dumps(each) + "\n" for each in replies("c", "a", "b")))
    found = batch(folder, "sh", "-c", script, "sh", "{output_file}")
    assert [response.text for response in found] == ["A", "B", "C"]
    assert [response.warnings for response in found] == [()] * 3


def test_empty_output_file_leaves_stdout(folder: Path) -> None:
    (folder / "printed").write_text("".join(json.dumps(each) + "\n" for each in replies("a", "b", "c")))
    found = batch(folder, "sh", "-c", 'cat printed; : > "$1"', "sh", "{output_file}")
    assert [response.text for response in found] == ["A", "B", "C"]


def test_output_file_that_is_none(folder: Path) -> None:
    found = batch(folder, "sh", "-c", 'ln -s /etc/passwd "$1"', "sh", "{output_file}")
    assert {error_of(response)[0] for response in found} == {"protocol"}


def test_trace_in_the_workspace(folder: Path) -> None:
    (folder / "printed").write_text(json.dumps({"id": "a", "text": "Hi", "trace_ref": "trace.json"}) + "\n")
    script = """echo '[{"type": "tool_call", "name": "search"}]' > "$1/trace.json"; cat printed"""
    (found,) = batch(folder, "sh", "-c", script, "sh", "{workspace}", requests=ask("a"))
    assert found.trace is not None
    assert found.trace[0].name == "search"


# One bad line costs nobody else


def test_bad_line_names_its_number_and_its_case(folder: Path) -> None:
    found = printing(folder, replies("a")[0], '{"id": "b", "text": "B', replies("c")[0])
    assert [response.success for response in found] == [True, False, True]
    kind, message, retryable = error_of(found[1])
    assert (kind, retryable) == ("protocol", False)
    assert message.startswith("line 2 of stdout cannot be read: not JSON")


def test_missing_reply_is_that_cases_error_and_says_what_stood_there_instead(folder: Path) -> None:
    found = printing(folder, "loading", *replies("a", "c"), {"id": "x", "text": "X"}, {"text": "B"})
    assert [response.success for response in found] == [True, False, True]
    kind, message, retryable = error_of(found[1])
    assert (kind, retryable) == ("protocol", True)
    assert message.split("; ") == [
        "the program gave no reply for this case (2 of 3 came)",
        "line 1 of stdout is no reply: 'loading'",
        "print logs to stderr",
        "line 4 of stdout is a reply to 'x', which was not asked",
        """line 5 of stdout has no `id`, so it cannot be assigned to a request: '{"text": "B"}'""",
    ]


def test_lines_that_are_nobodys_are_one_warning_when_all_replies_are_there(folder: Path) -> None:
    found = printing(folder, *["log"] * 9, *replies("a", "b", "c", "x"))
    assert [len(response.warnings) for response in found] == [6, 0, 0]
    assert found[0].warnings[-1] == "5 more lines are nobody's either"


def test_duplicate_is_that_cases_error(folder: Path) -> None:
    found = printing(folder, *replies("a", "b", "c", "b"))
    assert [response.success for response in found] == [True, False, True]
    assert error_of(found[1]) == ("protocol", "two replies have the id 'b': lines 2 and 4 of stdout", False)


def test_a_gigabyte_on_one_line(folder: Path) -> None:
    import resource  # noqa: PLC0415 - Windows has none

    script = (
        """printf '{"id": "b", "text": "'; head -c 1073741824 /dev/zero | tr '\\0' x; printf '"}\\n'; cat printed"""
    )
    (folder / "printed").write_text("".join(json.dumps(each) + "\n" for each in replies("a", "c")))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = batch(folder, "sh", "-c", script)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB
    assert [response.success for response in found] == [True, False, True]
    assert "line 1 of stdout is longer than 10,000,000 bytes" in error_of(found[1])[1]


def test_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "printed").write_bytes(
        b'\xff\xfe\n{"id": "a", "text": "\xff"}\n\x00\n\xef\xbb\xbf{"id": "b", "text": ""}\n'
    )
    found = batch(folder, "cat", "printed")
    assert found[0].text == "\ufffd"
    assert [response.success for response in found] == [True, True, False]


def test_deep_line(folder: Path) -> None:
    found = printing(folder, '{"id": "a", "text": ' + "[" * 200_000, *replies("b", "c"))
    assert [response.success for response in found] == [False, True, True]


# How it ends


def test_what_was_written_before_a_crash_is_kept(folder: Path) -> None:
    found = printing(folder, *replies("a"), then='echo \'no such model\' >&2; printf \'{"id": "b", "te\'; exit 3')
    assert found[0].text == "A"
    for response in found[1:]:
        kind, message, retryable = error_of(response)
        assert (kind, retryable) == ("agent", True)
        assert "no reply for this case (1 of 3 came): the program ended with exit code 3: no such model" in message
        assert "line 2 of stdout breaks off" in message


def test_exit_code_after_all_replies_is_a_warning(folder: Path) -> None:
    found = printing(folder, *replies("a", "b", "c"), then="exit 3")
    assert [response.success for response in found] == [True] * 3
    assert [response.warnings for response in found] == [("the program ended with exit code 3",), (), ()]


def test_program_that_cannot_be_started(folder: Path) -> None:
    found = batch(folder, "./missing")
    assert [error_of(response)[0] for response in found] == ["transport"] * 3
    assert not error_of(found[0])[2]


def test_floods_of_stderr_and_children_that_hold_the_pipes(folder: Path) -> None:
    found = printing(folder, *replies("a", "b", "c"), then="yes >&2 & sleep 1000 & (setsid sleep 1000 &); sleep 0.1")
    assert [response.text for response in found] == ["A", "B", "C"]


def test_program_that_reads_nothing(folder: Path) -> None:
    requests = ask(*(f"case-{number}" for number in range(5_000)))
    found = batch(folder, "sh", "-c", "exec <&-; echo done", requests=requests)
    assert len(found) == 5_000
    assert "'done'" in error_of(found[0])[1]


def test_time_is_for_the_whole_batch(folder: Path) -> None:
    (folder / "printed").write_text(json.dumps(replies("a")[0]) + "\n")

    async def main() -> asyncio.CancelledError:
        provider = Cli(name="agent", mode="batch", command=("sh", "-c", "cat printed; touch there; sleep 1000"))
        task = asyncio.create_task(invoke_async(provider, folder, ask("a", "b")))
        end = time.monotonic() + PATIENCE
        while not (folder / "there").exists():
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    assert "1 of 2 replies had come" in asyncio.run(main()).__notes__[0]


# With the engine

SUITE: dict[str, Any] = {"defaults": {"evaluators": [{"type": "tool_trajectory", "maximums": {"*": 0}}]}}
CAREFUL = """
import json, sys
with open("starts", "a") as starts:
    print("start", file=starts)
for line in sys.stdin:
    request = json.loads(line)
    with open("seen", "a") as seen:
        print(request["id"], request["attempt"], file=seen)
    {trouble}
    message = {{"role": "assistant", "content": "ok"}}
    print(json.dumps({{"id": request["id"], "output_messages": [message]}}), flush=True)
"""


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Names in an eval that is no file are relative to the working directory."""
    monkeypatch.chdir(folder)
    return folder


def evaluate(trouble: str, count: int, **options: Any) -> agentv.Execution:
    target = {"name": "agent", "provider": "cli", "mode": "batch", **options}
    target["command"] = [sys.executable, "-c", CAREFUL.format(trouble=trouble)]
    cases = [{"id": f"case-{number}", "input": "Hello"} for number in range(count)]
    return agentv.evaluate({**SUITE, "cases": cases}, target=target)


def statuses(execution: agentv.Execution) -> dict[str, int]:
    found: dict[str, int] = {}
    for result in execution.results:
        found[result.status] = found.get(result.status, 0) + 1
    return found


def test_batches_are_as_large_as_they_may_be(here: Path) -> None:
    assert statuses(evaluate("pass", 25, batch_size=10)) == {"pass": 25}
    assert (here / "starts").read_text().count("start") == 3


def test_retry_sends_again_only_what_is_missing(here: Path) -> None:
    forgetful = 'if request["id"] == "case-3" and request["attempt"] == 1: continue'
    execution = evaluate(forgetful, 10)
    assert statuses(execution) == {"pass": 10}
    assert [result.attempts for result in execution.results] == [1, 1, 1, 2, 1, 1, 1, 1, 1, 1]
    assert (here / "seen").read_text().splitlines()[10:] == ["case-3 2"]


@pytest.mark.usefixtures("here")
def test_one_case_that_crashes_the_program_costs_no_other() -> None:
    execution = evaluate('if request["id"] in ("case-3", "case-6"): sys.exit("poison")', 10)
    assert statuses(execution) == {"pass": 8, "error": 2}
    (error, _) = [result.error for result in execution.results if result.error]
    assert error.message == "no reply for this case: the program ended with exit code 1: poison"


# How it is written


def problems(*command: str, **options: Any) -> list[str]:
    return [str(problem) for problem in Cli(command=command, **options).check("targets[0]")]


@pytest.mark.parametrize("name", ["prompt", "case_id", "attempt"])
def test_what_stands_for_one_request_is_refused(name: str) -> None:
    (problem,) = problems("agent", f"--x={{{name}}}", mode="batch")
    assert problem.startswith(f"targets[0].command[1]: `{{{name}}}` is for `mode: single`; with `mode: batch` ")
    assert "`{input_file}`" in problem
    assert problems("agent", "{input_file}", "{output_file}", "{workspace}", mode="batch") == []


def test_settings_of_other_modes_are_refused() -> None:
    assert "`mode: batch`" in problems("agent", batch_size=5)[0]
    assert "`mode: stream`" in problems("agent", mode="batch", workers=5)[0]
    assert problems("agent", mode="batch", batch_size=5) == []


def test_only_a_batch_is_asked_many_times_at_once() -> None:
    async def takes_batches(mode: Any) -> bool:
        return isinstance(await Cli(command=("x",), mode=mode).open(Scope(root=".", folder=".")), BatchSession)

    modes = ("single", "stream", "batch")
    assert [asyncio.run(takes_batches(mode)) for mode in modes] == [False, False, True]


def test_one_request_alone(folder: Path) -> None:
    async def main() -> ProviderResponse:
        provider = Cli(name="agent", mode="batch", command=(sys.executable, "-c", ECHO))
        session = await provider.open(Scope(root=str(folder), folder=str(folder)))
        return await session.invoke(ask("a")[0])

    assert asyncio.run(main()).text == "a?"
