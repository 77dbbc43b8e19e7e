"""A Python function as a program: does everything that it prints stay out of the protocol's way?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs import test_guides as guides

HEAD = "import os, sys, time, asyncio, agentv\nfrom agentv.agent import serve\n"


def serve(program: str, *requests: Any, code: int = 0) -> tuple[dict[Any, Any], str]:
    """The replies by their ids, and stderr."""
    lines = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in requests)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as the provider does
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        input=lines,
        env=buffered,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    found = {reply.pop("id"): reply for reply in replies}
    assert len(found) == len(replies)
    for reply in replies:
        reply.pop("latency_ms", None)
    return found, done.stderr


def ask(wire_id: str, words: str = "Hello", **fields: Any) -> dict[str, Any]:
    return {"id": wire_id, "input_messages": [{"role": "user", "content": words}], "vars": {}, "attempt": 1, **fields}


def test_text_and_reply() -> None:
    assert serve("serve(lambda prompt: prompt.upper())", ask("a"))[0] == {"a": {"text": "HELLO"}}
    program = "serve(lambda prompt: [{'role': 'assistant', 'content': 'Hi', 'tool_calls': [{'tool': 'search'}]}])"
    (reply,) = serve(program, ask("a"))[0].values()
    assert reply["text"] == "Hi"
    assert reply["output_messages"][0]["tool_calls"] == [{"tool": "search"}]


def test_a_turn_of_a_conversation() -> None:
    program = """
def agent(request, resume=None):
    new = [message.text for message in request.new_messages]
    return f"{request.turn} {request.conversation_id} {new} {len(request.input_messages)} {request.resume} {resume}"
serve(agent)
"""
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    where = {"conversation_id": "t", "turn": 2}
    replies = serve(
        program,
        {"id": "1", "input_messages": said, "new_messages": said[2:], **where},
        {"id": "2", "input_messages": said[:2], "new_messages": [], "resume": {"yes": True}, **where},
        {"id": "3", "input_messages": said[:1]},
    )[0]
    assert [replies[number]["text"] for number in "123"] == [
        "2 t ['c'] 3 UNSET None",
        "2 t [] 2 {'yes': True} {'yes': True}",
        "1  ['a'] 1 UNSET None",
    ]


def test_whole_request() -> None:
    program = """
def agent(request):
    return {"text": request.prompt, "metadata": [request.id, request.vars, request.attempt, request.thread_id]}
serve(agent)
"""
    request = ask("a#2", case_id="a", vars={"n": 1}, attempt=2, thread_id="t")
    (reply,) = serve(program, request)[0].values()
    assert reply["metadata"] == {"metadata": ["a", {"n": 1}, 2, "t"]}


def test_messages() -> None:
    assert serve("serve(lambda messages: str(len(messages)))", ask("a"))[0] == {"a": {"text": "1"}}


def test_empty_answer_is_one() -> None:
    assert serve("serve(lambda prompt: '')", ask("a"))[0] == {"a": {"text": ""}}


def test_coroutines_run_at_the_same_time() -> None:
    program = """
met = asyncio.Event()
async def agent(prompt):
    met.set() if prompt == "second" else await met.wait()
    return prompt
serve(agent)
"""
    found, _ = serve(program, ask("a", "first"), ask("b", "second"))
    assert list(found) == ["b", "a"]


def test_plain_functions_run_at_the_same_time() -> None:
    program = """
from threading import Barrier
met = Barrier(3, timeout=30)
def agent(prompt):
    met.wait()
    return prompt
serve(agent)
"""
    assert sorted(serve(program, *(ask(each) for each in "abc"))[0]) == ["a", "b", "c"]


def test_no_more_at_once_than_allowed() -> None:
    program = """
running = most = 0
async def agent(prompt):
    global running, most
    running += 1
    most = max(most, running)
    await asyncio.sleep(0.001)
    running -= 1
    return str(most)
serve(agent, max_concurrency=3)
"""
    found, _ = serve(program, *(ask(f"case-{number}") for number in range(30)))
    assert {reply["text"] for reply in found.values()} <= {"1", "2", "3"}


def test_everything_printed_goes_to_stderr() -> None:
    program = """
import logging, subprocess
handler = logging.StreamHandler(sys.stdout)
print("while loading")
def agent(prompt):
    print("print")
    os.write(1, b"write\\n")
    handler.stream.write("handler\\n"); handler.flush()
    subprocess.run(["echo", "child"])
    return "ok"
serve(agent)
"""
    found, stderr = serve(program, ask("a"))
    assert found == {"a": {"text": "ok"}}
    assert {"while loading", "print", "write", "handler", "child"} <= set(stderr.splitlines())


def test_nobody_else_reads_the_requests() -> None:
    program = """
import subprocess
def agent(prompt):
    return sys.stdin.read() + subprocess.run(["cat"], capture_output=True, text=True).stdout + "nothing"
serve(agent)
"""
    found, _ = serve(program, ask("a"), ask("b"), ask("c"))
    assert {reply["text"] for reply in found.values()} == {"nothing"}


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        ("ValueError('no')", {"kind": "agent", "message": "ValueError: no"}),
        ("SystemExit(3)", {"kind": "agent", "message": "SystemExit: 3"}),
        ("ConnectionError('x')", {"kind": "transport", "message": "ConnectionError: x", "retryable": True}),
        ("agentv.ProviderError('x', transient=True)", {"kind": "transport", "message": "x", "retryable": True}),
        ("TimeoutError('x')", {"kind": "timeout", "message": "x"}),
    ],
)
@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_exceptions_are_replies(raised: str, error: dict[str, Any], keyword: str) -> None:
    program = f"{keyword} agent(prompt):\n    if prompt == 'bad': raise {raised}\n    return prompt\nserve(agent)"
    found, _ = serve(program, ask("a", "bad"), ask("b", "good"))
    assert found["b"] == {"text": "good"}
    message = found["a"]["error"]["message"].partition("\nat ")[0]
    assert {"retryable": False, **found["a"]["error"], "message": message} == {"retryable": False, **error}


def test_nothing_returned_is_an_error() -> None:
    found, _ = serve("serve(lambda prompt: None)", ask("a"))
    assert found["a"]["error"]["kind"] == "protocol"


def test_what_strict_json_cannot_hold() -> None:
    program = "serve(lambda prompt: {'text': 'a\\ud800\\0', 'metadata': {'n': float('nan'), 'o': object}})"
    found, _ = serve(program, ask("a"))
    assert found["a"]["text"] == "a\ufffd\ufffd"


@pytest.mark.parametrize("line", ["hello", "[1]", "{", '{"id": "x", "input_messages": 7, "vars": 7, "attempt": "x"}'])
def test_what_is_no_request(line: str) -> None:
    found, _ = serve("serve(lambda prompt: 'ok')", line, "", ask("a"))
    assert found["a"] == {"text": "ok"}
    assert len(found) == 2


def test_last_line_needs_no_newline() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + "serve(lambda prompt: 'ok')"],
        input=json.dumps(ask("a")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["text"] == "ok"


def test_it_is_light() -> None:
    code = "import sys, agentv.agent; print(*sys.modules, sep='\\n')"
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert {"click", "yaml", "regex", "sqlite3", "agentv.api", "agentv.spec"} & set(done.stdout.split()) == set()


def test_the_page_of_the_protocol_shows_what_happens(tmp_path: Path) -> None:
    page = guides.DOCS / "reference" / "agent-protocol.md"
    _, wrong = guides.run_page(page.read_text(encoding="utf-8"), tmp_path)
    assert not wrong, "\n\n".join(wrong)
    guides.test_every_example_is_run(page)
    guides.test_lines_are_short(page)
