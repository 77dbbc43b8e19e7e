"""Code of the user's as a target: what it is given, what it may return, and what goes wrong with it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import agentv
from agentv.cli.main import group
from agentv.model.conversation import UNSET, Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.process import orphans
from agentv.protocols import ProviderSession
from agentv.providers.python import PythonAgent
from agentv.run.attempt import RetryPolicy, try_run

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and process trees of POSIX")
PATIENCE = 60.0
"""Far more than anything here takes: a busy machine is no failure."""


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process of ours is, and stdout is where it was."""
    before, stdout, path = set(orphans._children()), sys.stdout, list(sys.path)  # noqa: SLF001 - the same view
    yield
    assert set(orphans._children()) <= before  # noqa: SLF001 - as above
    assert sys.stdout is stdout
    sys.path[:] = path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "evals"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def question(words: str = "Hi", **fields: Any) -> Request:
    return Request(id=fields.pop("id", "a"), input_messages=(Message(role="user", content=words),), **fields)


@asynccontextmanager
async def opened(code: str, name: str = "agent", **settings: Any) -> AsyncIterator[ProviderSession]:
    here = Path.cwd()
    if code:
        (here / "agent.py").write_text(code)
    provider = PythonAgent(name="agent", function=settings.pop("function", f"./agent.py:{name}"), **settings)
    assert provider.check("target") == []
    session = await provider.open(Scope(root=str(here), folder=str(here)))
    try:
        async with asyncio.timeout(PATIENCE):
            yield session
    finally:
        await session.close()


async def tried(provider: ProviderSession, request: Request, timeout_s: float = PATIENCE) -> ProviderResponse:
    """One attempt, as an execution makes it."""
    found = await try_run(provider, request, RetryPolicy(timeout_s, 0, retry_timeouts=False), lambda: False)
    assert found is not None
    return found.response


def ask(code: str, *requests: Request, name: str = "agent", **settings: Any) -> list[ProviderResponse]:
    """The replies to requests that are all made at once."""

    async def main() -> list[ProviderResponse]:
        async with opened(code, name, **settings) as provider:
            return await asyncio.gather(*(tried(provider, each) for each in requests or [question()]))

    return asyncio.run(main())


def text(code: str, **settings: Any) -> str:
    (response,) = ask(code, **settings)
    assert response.error is None, response.error
    return response.text


def error(code: str, **settings: Any) -> tuple[str, str, bool]:
    (response,) = ask(code, **settings)
    assert response.error is not None, response
    message = response.error.message.partition("\nat ")[0]  # the frames are tested in test_tracebacks.py
    return response.error.kind, message, response.error.retryable


# What can be named


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def agent(prompt): return prompt.upper()", "HI"),
        ("async def agent(prompt): return prompt.upper()", "HI"),
        ("agent = lambda prompt: prompt * 2", "HiHi"),
        ("agent = str.upper", "HI"),
        ("class agent:\n  def __call__(self, prompt): return prompt.upper()", "HI"),
        ("class agent:\n  async def __call__(self, prompt): return prompt.upper()", "HI"),
        ("class agent:\n  async def ainvoke(self, prompt): return 'a'\n  def invoke(self, prompt): return 'b'", "a"),
        ("class agent:\n  def run(self, prompt): return 'c'\n  def invoke(self, prompt): return 'b'", "b"),
        ("class agent:\n  def run(self, prompt): return 'c'", "c"),
        ("class Agent:\n  def run(self, prompt): return 'd'\nagent = Agent()", "d"),
        ("class Agent:\n  def ask(self, prompt): return 'e'\nclass agent:\n  ask = Agent().ask\n  run = ask", "e"),
        ("async def agent(prompt):\n  yield 'piece '\n  yield 'by piece'", "piece by piece"),
        ("def agent(prompt):\n  yield 'piece '\n  yield 'by piece'", "piece by piece"),
        ("async def inner(prompt): return 'later'\ndef agent(prompt): return inner(prompt)", "later"),
        ("import functools\n@functools.cache\ndef agent(prompt): return 'cached'", "cached"),
    ],
)
def test_functions_classes_objects_and_generators_are_asked(code: str, expected: str) -> None:
    assert text(code) == expected


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        ("prompt", "'Hi'"),
        ("anything", "'Hi'"),
        ("messages", "[{'role': 'user', 'content': 'Hi'}]"),
        ("input_messages", "[{'role': 'user', 'content': 'Hi'}]"),
        ("request", "('a', 'Hi', {'n': 1}, 2, 3, 4)"),
    ],
)
@pytest.mark.parametrize("workers", [None, 1])
def test_the_first_parameter_says_what_it_is_given(parameter: str, expected: str, workers: int | None) -> None:
    told = "(request.id, request.prompt, request.vars, request.attempt, request.repeat, request.index)"
    code = f"def agent({parameter}): return repr({told if parameter == 'request' else parameter})"
    (found,) = ask(code, question(vars={"n": 1}, attempt=2, repeat=3, index=4), workers=workers)
    assert found.text == expected


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 1])
def test_a_class_is_made_once_with_its_args(workers: int | None) -> None:
    code = """
class Agent:
    def __init__(self, greeting, times=1):
        self.greeting, self.asked = greeting * times, 0
    def __call__(self, prompt):
        self.asked += 1
        return f"{self.greeting} {self.asked}"
"""
    found = ask(
        code, *[question()] * 3, name="Agent", args={"greeting": "ho", "times": 2}, workers=workers, max_concurrency=1
    )
    assert sorted(each.text for each in found) == ["hoho 1", "hoho 2", "hoho 3"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("close", ["def close(self)", "async def close(self)", "async def aclose(self)"])
def test_an_instance_is_closed_at_the_end_once(close: str, workers: int | None) -> None:
    code = f"""
import os
class Agent:
    def __call__(self, prompt):
        return "hello"
    {close}:
        with open("closed", "a") as stream:
            print(os.getpid(), file=stream)
"""
    ask(code, *[question()] * 2, name="Agent", workers=workers)
    closed = Path("closed").read_text().split()
    assert len(set(closed)) == len(closed)
    assert len(closed) == 1 if workers is None else 1 <= len(closed) <= workers


@pytest.mark.usefixtures("folder")
def test_what_was_there_before_is_not_ours_to_close() -> None:
    code = "class Agent:\n  def run(self, prompt): return 'a'\n  def close(self): open('closed', 'w')\nagent = Agent()"
    assert text(code) == "a"
    assert not Path("closed").exists()


@pytest.mark.usefixtures("folder")
def test_a_function_gets_its_args_at_each_call() -> None:
    assert text("def agent(prompt, *, shout): return prompt + shout", args={"shout": "!"}) == "Hi!"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_ends_a_generator_ends_its_run_alone(kind: str) -> None:
    kind_of_error, words, _ = error(f"{kind} agent(prompt):\n    raise GeneratorExit")
    assert kind_of_error == "agent"
    assert words.endswith("GeneratorExit")


def test_what_it_writes_into_its_request_is_seen_by_nobody_else() -> None:
    seen = []

    def agent(request: Request) -> str:
        seen.append((dict(request.vars), request.input_messages[0].text))
        request.vars["more"] = True
        request.input_messages[0].content[0]["text"] = "changed"  # type: ignore[index]  # a list of blocks, as below
        return "yes"

    words = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    case = {
        "id": "a",
        "input_messages": words,
        "vars": {"city": "Paris"},
        "evaluators": [{"type": "contains", "value": "yes"}],
    }
    assert agentv.evaluate({"cases": [case]}, target=agent, repeat=2).passed
    assert seen == [({"city": "Paris"}, "Hi")] * 2


@pytest.mark.usefixtures("folder")
def test_a_class_whose_calls_are_asynchronous_is_made_in_the_event_loop() -> None:
    code = """
import asyncio
class Agent:
    def __init__(self): self.loop = asyncio.get_running_loop()
    async def run(self, prompt): return str(self.loop is asyncio.get_running_loop())
"""
    assert text(code, name="Agent") == "True"


def test_a_module_of_the_path_is_one_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bots").mkdir()
    (folder / "bots" / "polite.py").write_text("class Bot:\n    def run(self, prompt): return 'Please'\nbot = Bot()")
    monkeypatch.syspath_prepend(str(folder))
    try:
        assert text("", function="bots.polite:bot") == "Please"
        assert text("", function="bots.polite:bot.run", workers=1) == "Please"
    finally:
        sys.modules.pop("bots.polite", None)
        sys.modules.pop("bots", None)


def test_a_file_may_import_what_lies_beside_it_and_none_of_that_replaces_what_is_installed(folder: Path) -> None:
    (folder / "tools_of_mine.py").write_text("def shout(words): return words.upper()")
    for name in ("json", "msgspec", "asyncio", "agentv"):
        (folder / f"{name}.py").write_text("raise RuntimeError('not this one')")
    code = "import json, tools_of_mine\ndef agent(prompt): return json.dumps(tools_of_mine.shout(prompt))"
    assert text(code) == '"HI"'
    assert text(code, workers=1) == '"HI"'


@pytest.mark.usefixtures("folder")
def test_plain_functions_run_at_the_same_time() -> None:
    code = """
import threading
barrier = threading.Barrier(3)
def agent(prompt):
    barrier.wait(30)
    return "met"
"""
    assert [each.text for each in ask(code, *[question()] * 3)] == ["met"] * 3


# What goes wrong when it is loaded


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize(
    ("code", "function", "words"),
    [
        ("", "./missing.py:agent", "'./missing.py' is not a file below"),
        ("", "../outside.py:agent", "lies outside"),
        ("", "no_such_module_here:agent", "there is no module 'no_such_module_here' on the Python path"),
        ("def agent(prompt): ...", "./agent.py:agnet", "'./agent.py' has no 'agnet'; did you mean 'agent'?"),
        (
            "import os\n\nvalue = 1 / 0",
            "./agent.py:agent",
            "ZeroDivisionError: division by zero (agent.py, line 3: value",
        ),
        (
            "import no_such_library",
            "./agent.py:agent",
            "ModuleNotFoundError: No module named 'no_such_library' (agent.py",
        ),
        ("def agent(:", "./agent.py:agent", "SyntaxError: invalid syntax (agent.py, line 1: def agent(:)"),
        ("import json\njson.loads('{')", "./agent.py:agent", "(agent.py, line 2: json.loads('{'))"),
        ("raise SystemExit('no licence')", "./agent.py:agent", "SystemExit: no licence (agent.py, line 1"),
        ("raise KeyboardInterrupt", "./agent.py:agent", "KeyboardInterrupt (agent.py, line 1"),
    ],
)
def test_code_that_does_not_load_is_every_run_s_error(
    code: str, function: str, words: str, workers: int | None
) -> None:
    found = ask(code, question(id="a"), question(id="b"), function=function, workers=workers)
    for each in found:
        assert each.error is not None
        assert (each.error.kind, each.error.retryable) == ("transport", False)
        assert each.error.message.startswith(f"'{function}' cannot be loaded: ")
        assert words in each.error.message


def test_code_that_does_not_load_is_run_once(folder: Path) -> None:
    ask("with open('runs', 'a') as file: file.write('x')\nraise ValueError", *[question()] * 5)
    assert (folder / "runs").read_text() == "x"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("code", "settings", "words"),
    [
        ("agent = 42", {}, "a int cannot be asked: expected a function, a class, or an object with `__call__`"),
        ("def agent(): return 'x'", {}, "the function takes no argument"),
        ("class A:\n  def run(self, p): ...\nagent = A.run", {}, "it is a method without its object: name the class"),
        ("class A:\n  def run(self, p): ...\nagent = A()", {"args": {"n": 1}}, "`args` are for a function or a class"),
        ("class agent:\n  def run(self, p): ...", {"args": {"n": 1}}, "TypeError: agent() takes no arguments"),
    ],
)
def test_what_cannot_be_asked_says_why(code: str, settings: dict[str, Any], words: str) -> None:
    kind, message, retryable = error(code, **settings)
    assert (kind in ("protocol", "agent"), retryable) == (True, False)
    assert words in message


@pytest.mark.parametrize("function", ["agent", "./agent.py", "./agent.py:", ":agent", "a b:c", "./agent.py:1"])
def test_a_place_that_cannot_be_one_is_found_before_anything_runs(function: str) -> None:
    (problem,) = PythonAgent(name="agent", function=function).check("targets[0]")
    assert problem.path == "targets[0].function"
    assert "'./agent.py:name'" in problem.message


def test_nothing_is_imported_to_validate_and_no_exec_refuses_it(folder: Path) -> None:
    (folder / "agent.py").write_text("open('ran', 'w')\ndef agent(prompt): return 'x'")
    file = folder / "a.eval.yaml"
    file.write_text(
        "targets: [{name: mine, provider: python, function: ./agent.py:agent, args: {n: 1}, workers: 2}]\n"
        "cases: [{id: a, input: Hi, evaluators: [{type: contains, value: x}]}]\n"
    )
    assert CliRunner().invoke(group, ["validate", str(file)]).exit_code == 0
    refused = CliRunner().invoke(group, ["eval", str(file), "--no-exec"])
    assert refused.exit_code == 2
    assert "--no-exec forbids" in refused.output
    assert not (folder / "ran").exists()


# What goes wrong when it is asked


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 1])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("raise ValueError('no such order')", ("agent", "ValueError: no such order", False)),
        ("raise ConnectionError('reset')", ("transport", "ConnectionError: reset", True)),
        ("raise ValueError", ("agent", "ValueError", False)),
        ("import sys; sys.exit(3)", ("agent", "SystemExit: 3", False)),
        ("raise KeyboardInterrupt", ("agent", "KeyboardInterrupt", False)),
        ("raise type('Stop', (BaseException,), {})('now')", ("agent", "Stop: now", False)),
        (
            "raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})",
            ("agent", "Odd, whose text is itself an error (ZeroDivisionError)", False),
        ),
        ("import asyncio; raise asyncio.CancelledError('mine')", ("agent", "CancelledError: mine", False)),
        (
            "return None",
            ("protocol", "there is no reply: the agent gave back nothing; send a text, messages, or a reply", False),
        ),
        ("return 42", ("protocol", "expected a text, messages or a reply, got 42", False)),
        ("return {'error': {'kind': 'transport', 'message': 'busy', 'retryable': True}}", ("transport", "busy", True)),
    ],
)
def test_what_it_throws_or_fails_to_return_is_that_run_s_error(
    body: str, expected: tuple[str, str, bool], workers: int | None
) -> None:
    assert error(f"def agent(prompt):\n    {body}", workers=workers) == expected
    assert error(f"async def agent(prompt):\n    {body}", workers=workers) == expected


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 1])
def test_what_it_prints_disturbs_nobody(workers: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    code = """
import os, sys
print("loading")
async def later(prompt):
    print("asked", flush=True)
    sys.stdout.writelines(["more"])
    sys.stdout.close()
    return "fine"
class Agent:
    def __init__(self): print("made")
    def __call__(self, prompt):
        print("thinking")
        return later(prompt)
"""
    (found,) = ask(code, name="Agent", workers=workers)
    assert (found.text, found.warnings) == ("fine", ())
    sys.stdout.write("ours\n")
    assert capsys.readouterr().out == "ours\n"


# What it may return; the objects of libraries are in tests/formats


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [None, 1])
def test_a_reply_comes_back_whole(workers: int | None) -> None:
    code = """
import agentv
def agent(prompt):
    call = {"tool": "search", "input": {"q": None}, "output": None, "id": "c1", "status": "error", "error": "x"}
    return {
        "output_messages": [
            {"role": "assistant", "tool_calls": [call, {"tool": "look"}]},
            {"role": "assistant", "content": "Done \\u00e9\\U0001f600"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_tokens": 1},
        "cost_usd": 0.25, "thread_id": "t", "mood": {"good": True}, "latency_ms": 12.5, "reasoning": "hm",
    }
"""
    (found,) = ask(code, workers=workers)
    assert found.output_messages is not None
    first, second = found.output_messages[0].tool_calls
    assert (first.input, first.output, first.status, first.error) == ({"q": None}, None, "error", "x")
    assert (second.input, second.output) == (UNSET, UNSET)
    assert found.text == "Done é😀"
    assert found.tokens_usage is not None
    assert (found.tokens_usage.total_tokens, found.tokens_usage.cache_read_tokens) == (7, 1)
    assert (found.cost_usd, found.thread_id, found.latency_ms, found.reasoning) == (0.25, "t", 12.5, "hm")
    assert found.metadata == {"mood": {"good": True}}


@pytest.mark.usefixtures("folder")
def test_a_reply_made_by_hand_is_not_touched() -> None:
    code = "import agentv\ndef agent(prompt): return agentv.ProviderResponse(text='x', cost_usd=1.0)"
    (found,) = ask(code)
    assert (found.text, found.cost_usd) == ("x", 1.0)


@pytest.mark.usefixtures("folder")
def test_what_was_asked_is_not_output() -> None:
    code = """
def agent(messages):
    told = {"role": "system", "content": "Be brief."}
    return {"messages": [told, *messages, {"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "t"}]}]}
"""
    (found,) = ask(code)
    assert found.output_messages is not None
    assert [message.role for message in found.output_messages] == ["assistant"]
    assert found.text == "Hi"


@pytest.mark.usefixtures("folder")
def test_a_question_that_cannot_be_told_from_the_user_s_is_no_output() -> None:
    code = (
        "def agent(prompt): return [{'role': 'user', 'content': 'sub-question'}, {'role': 'assistant', 'content': 'x'}]"
    )
    (found,) = ask(code)
    assert [message.role for message in found.output_messages or ()] == ["assistant"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("returned", "words", "raw"),
    [
        ("{'city': 'Paris', 'days': 3}", '{"city":"Paris","days":3}', {"city": "Paris", "days": 3}),
        ("Answer(city='Paris', when=date(2026, 1, 2))", '{"city":"Paris","when":"2026-01-02"}', None),
        ("{'answer': 'Paris'}", "Paris", None),
        ("['Paris', 'Rome']", '["Paris","Rome"]', ["Paris", "Rome"]),
        ("[{'city': 'Paris'}, {'city': 'Rome'}]", '[{"city":"Paris"},{"city":"Rome"}]', None),
        ("[Answer(city='Paris', when=date(2026, 1, 2))]", '[{"city":"Paris","when":"2026-01-02"}]', None),
        ("{'role': 'assistant', 'content': 'Paris'}", "Paris", None),
        ("Completion()", "Paris", None),
    ],
)
def test_an_answer_in_a_form_of_its_own_is_still_an_answer(returned: str, words: str, raw: Any) -> None:
    code = f"""
from dataclasses import dataclass
from datetime import date
@dataclass
class Answer:
    city: str
    when: date
class Completion:
    def model_dump(self):
        return {{"choices": [{{"message": {{"role": "assistant", "content": "Paris"}}}}], "usage": None}}
def agent(prompt): return {returned}
"""
    (found,) = ask(code)
    assert found.error is None
    assert found.text == words
    if raw is not None:
        assert found.raw_response == raw


@pytest.mark.usefixtures("folder")
def test_pieces_that_are_messages_are_the_messages() -> None:
    code = """
async def agent(prompt):
    yield {"role": "assistant", "tool_calls": [{"name": "search", "args": {"q": 1}, "id": "c"}]}
    yield {"role": "tool", "tool_call_id": "c", "content": "found"}
    yield "Do"
    yield "ne"
"""
    (found,) = ask(code)
    assert found.text == "Done"
    (call,) = [call for message in found.output_messages or () for call in message.tool_calls]
    assert (call.tool, call.input, call.output) == ("search", {"q": 1}, "found")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "function",
    [
        "def agent(prompt): return iter(CHUNKS)",
        "def agent(prompt): yield from CHUNKS",
        "def agent(prompt): return CHUNKS",
        "async def agent(prompt):\n    for chunk in CHUNKS: yield chunk",
        "async def agent(prompt): return map(dict, CHUNKS)",
    ],
)
def test_chunks_of_a_model_are_put_together_however_they_come(function: str) -> None:
    code = """
def chunk(delta, reason=None):
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

CALL = {"index": 0, "id": "c", "function": {"name": "search", "arguments": '{"q": '}}
CHUNKS = [
    chunk({"role": "assistant", "tool_calls": [CALL]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
    chunk({}, "tool_calls"),
    chunk({"role": "assistant", "content": "Do"}),
    chunk({"content": "ne"}, "stop"),
]
"""
    (found,) = ask(code + function)
    assert (found.text, found.error, found.unread) == ("Done", None, ())
    (call,) = [call for message in found.output_messages or () for call in message.tool_calls]
    assert (call.tool, call.input) == ("search", {"q": 1})


# Workers


def pids(found: list[ProviderResponse]) -> set[int]:
    return {int(each.text) for each in found}


@pytest.mark.usefixtures("folder")
def test_workers_are_processes_of_their_own_and_each_has_one_request_at_a_time() -> None:
    code = """
import os, time
busy = 0
async def agent(prompt):
    global busy
    busy += 1
    assert busy == 1
    time.sleep(0.01)
    busy -= 1
    return str(os.getpid())
"""
    found = ask(code, *[question(id=str(number)) for number in range(20)], workers=2)
    assert all(each.success for each in found)
    assert 1 <= len(pids(found)) <= 2
    assert os.getpid() not in pids(found)


def test_no_more_are_asked_at_once_than_there_are_workers() -> None:
    assert PythonAgent(function="a:b", workers=2).max_concurrency == 2
    assert PythonAgent(function="a:b", workers=2, max_concurrency=50).max_concurrency == 2
    assert PythonAgent(function="a:b", workers=9, max_concurrency=5).max_concurrency == 5
    assert PythonAgent(function="a:b").max_concurrency is None


@posix
@pytest.mark.usefixtures("folder")
def test_a_worker_that_dies_fails_its_own_run_and_is_replaced() -> None:
    code = """
import os, signal
def agent(prompt):
    if prompt == "die": os.kill(os.getpid(), signal.SIGKILL)
    return str(os.getpid())
"""

    async def main() -> None:
        async with opened(code, workers=2) as provider:
            found = await asyncio.gather(
                *(tried(provider, question("die" if each == 3 else "live", id=str(each))) for each in range(8))
            )
            dead = found.pop(3)
            assert dead.error is not None
            assert (dead.error.kind, dead.error.retryable) == ("transport", True)
            assert "SIGKILL" in dead.error.message
            assert all(each.success for each in found), found
            assert (await tried(provider, question())).success
            # Asked again, alone in a new process, it is the agent's own fault.
            again = await tried(provider, question("die", id="3", attempt=2))
            assert again.error is not None
            assert (again.error.kind, again.error.retryable) == ("agent", False)

    asyncio.run(main())


@posix
@pytest.mark.usefixtures("folder")
def test_a_worker_that_is_out_of_time_is_killed_and_replaced() -> None:
    code = """
import os, sys, time
def agent(prompt):
    print("thinking hard", file=sys.stderr, flush=True)
    while prompt == "hang": time.sleep(0.01)
    return str(os.getpid())
"""

    async def main() -> None:
        async with opened(code, workers=1) as provider:
            before = int((await tried(provider, question())).text)
            late = await tried(provider, question("hang"), timeout_s=0.3)
            assert late.error is not None
            assert late.error.kind == "timeout"
            assert "thinking hard" in late.error.message
            after = int((await tried(provider, question())).text)
            assert after != before
            with pytest.raises(ProcessLookupError):
                os.kill(before, 0)

    asyncio.run(main())


@posix
@pytest.mark.usefixtures("folder")
def test_nothing_is_left_when_it_is_closed_in_the_middle() -> None:
    code = """
import os, subprocess, sys, time
def agent(prompt):
    open("pid", "w").write(str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid))
    time.sleep(600)
"""

    async def main() -> None:
        async with opened(code, workers=1) as provider:
            asking = asyncio.create_task(provider.invoke(question()))
            await asyncio.to_thread(written, Path("pid"))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


@posix
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "agent",
    ["def agent(prompt):\n    {}\n    time.sleep(600)", "async def agent(prompt):\n    {}\n    while True: pass"],
)
def test_a_worker_ends_when_nobody_is_left_to_hear_it(agent: str) -> None:
    """Given a process of agentv that was killed, when its worker is in the middle of something, then it ends too."""
    note = "f = open('pid', 'w'); f.write(str(os.getpid())); f.close()"
    Path("agent.py").write_text(f"import os, time\n{agent.format(note)}\n")
    parent = """
import asyncio
from agentv.model.request import Request, Scope
from agentv.providers.python import PythonAgent
async def main():
    provider = PythonAgent(function="./agent.py:agent", workers=1)
    session = await provider.open(Scope(root=".", folder="."))
    await session.invoke(Request(id="a"))
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", parent]) as process:
        pid = int(written(Path("pid")))
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and _is_alive(pid):
        time.sleep(0.01)
    assert not _is_alive(pid)


def written(file: Path) -> str:
    """Return the text of a file as soon as it has one."""
    end = time.monotonic() + PATIENCE
    while not file.exists() or not file.read_text():
        assert time.monotonic() < end
        time.sleep(0.01)
    return file.read_text()


def _is_alive(pid: int) -> bool:
    if sys.platform == "linux":
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and b") Z " not in stat.read_bytes()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("folder")
def test_agent_data_never_goes_through_a_pickle() -> None:
    code = """
class Odd:
    def __reduce__(self): raise RuntimeError("pickled")
    def __str__(self): return "odd"
def agent(request):
    return {"text": "x", "metadata": {"odd": Odd(), "given": request.vars}}
"""
    (found,) = ask(code, question(vars={"deep": [{"a": None}]}), workers=1)
    assert found.metadata == {"odd": "odd", "given": {"deep": [{"a": None}]}}


@pytest.mark.usefixtures("folder")
def test_a_worker_sees_the_environment_that_agentv_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_OF_MINE", "large")
    assert text("import os\ndef agent(prompt): return os.environ['MODEL_OF_MINE']", workers=1) == "large"


# As a target of an eval


def test_an_eval_runs_it_and_hides_its_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "opensesame-4711")
    (folder / "agent.py").write_text(
        "import os\ndef agent(prompt):\n"
        "    return [{'role': 'assistant', 'content': 'the key is ' + os.environ['MY_KEY']}]"
    )
    file = folder / "a.eval.yaml"
    file.write_text(
        "targets:\n"
        "  - {name: here, provider: python, function: ./agent.py:agent, secrets: [MY_KEY]}\n"
        "  - {name: there, provider: python, function: ./agent.py:agent, secrets: [MY_KEY], workers: 1}\n"
        "cases: [{id: a, input: Hi, evaluators: [{type: contains, value: key}]}]\n"
    )
    command = [
        sys.executable,
        "-m",
        "agentv",
        "eval",
        str(file),
        "--out",
        str(folder / "out.jsonl"),
        "--include-messages",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    results = (folder / "out.jsonl").read_text()
    assert "the key is" in results
    assert "opensesame" not in results + done.stdout + done.stderr


@pytest.mark.usefixtures("folder")
def test_a_function_handed_to_evaluate_is_called_and_read_in_the_same_way() -> None:
    class Agent:
        async def ainvoke(self, messages: list[dict[str, Any]]) -> Any:
            yield {"role": "assistant", "content": f"You said {messages[-1]['content']}"}

        def __call__(self, messages: list[dict[str, Any]]) -> Any:
            return self.ainvoke(messages)

    case = {"id": "a", "input": "Hi", "evaluators": [{"type": "contains", "value": "You said Hi"}]}
    assert agentv.evaluate({"cases": [case]}, target=Agent()).passed
    assert agentv.evaluate({"cases": [case]}, target=Agent).passed


def test_an_object_that_can_be_asked_is_a_target_and_any_other_is_refused() -> None:
    class Agent:
        closed = False

        def run(self, prompt: str) -> str:
            return f"You said {prompt}"

        def close(self) -> None:
            Agent.closed = True

    case = {"id": "a", "input": "Hi", "evaluators": [{"type": "contains", "value": "You said Hi"}]}
    assert agentv.evaluate({"cases": [case]}, target=Agent()).passed
    assert not Agent.closed
    with pytest.raises(agentv.SpecError, match="a mapping, a function, or an agent; got int"):
        agentv.evaluate({"cases": [case]}, target=5)


def test_errors_of_loading_are_ours() -> None:
    async def main() -> None:
        async with opened("", function="./missing.py:agent") as provider:
            error = (await provider.invoke(question())).error
        assert error is not None
        assert (error.kind, error.retryable) == ("transport", False)

    asyncio.run(main())
