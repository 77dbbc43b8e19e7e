"""Programs as targets: what they are told, and what is made of what they print."""

import asyncio
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.process import orphans
from agentv.providers.cli import Cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are shell scripts")

ASK = (Message(role="system", content="Be brief."), Message(role="user", content="Hello?"))
HOSTILE_IDS = ["../../x", "x" * 300, "CON", "a/b", "a\nb", "-rf", "$(touch pwned)", "{prompt}", ".", "é\ud800"]
REPLY = {"output_messages": [{"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "search"}]}]}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of workspaces; none may remain."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "evals"
    made.mkdir()
    return made


async def invoke_async(folder: Path, command: tuple[str, ...], request: Request, **options: Any) -> ProviderResponse:
    provider = Cli(name="agent", command=command, **options)
    assert provider.check("target") == []
    session = await provider.open(Scope(root=str(folder), folder=str(folder)))
    try:
        return await session.invoke(request)
    finally:
        await session.close()


def invoke(folder: Path, *command: str, request: Request | None = None, **options: Any) -> ProviderResponse:
    asked = request or Request(id="case-1", input_messages=ASK)
    return asyncio.run(invoke_async(folder, command, asked, **options))


def sh(folder: Path, script: str, *arguments: str, **options: Any) -> ProviderResponse:
    return invoke(folder, "sh", "-c", script, "sh", *arguments, **options)


def printing(folder: Path, text: str | bytes, script: str = "cat printed", **options: Any) -> ProviderResponse:
    """The reply of a program that prints this."""
    (folder / "printed").write_bytes(text if isinstance(text, bytes) else text.encode())
    return sh(folder, script, **options)


def error_of(response: ProviderResponse) -> tuple[str, str, bool]:
    assert not response.success
    assert response.error is not None
    return response.error.kind, response.error.message, response.error.retryable


# What the program is told


def test_request_is_on_stdin(folder: Path) -> None:
    request = Request(
        id="case-1",
        input_messages=(*ASK, Message(role="assistant", tool_calls=(ToolCall(tool="t", input={}),))),
        vars={"n": 1},
        attempt=2,
        thread_id="thread",
    )
    told = json.loads(sh(folder, "printf '> '; cat", request=request).text.removeprefix("> "))
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "tool_calls": [{"tool": "t", "input": {}}]},
    ]
    assert told == {
        "id": "case-1",
        "case_id": "case-1",
        "input_messages": messages,
        "new_messages": messages,
        "turn": 1,
        "conversation_id": "",
        "vars": {"n": 1},
        "attempt": 2,
        "thread_id": "thread",
    }


def test_request_without_a_thread_has_no_thread_id(folder: Path) -> None:
    told = json.loads(sh(folder, "printf '> '; cat").text[2:])
    always = {"id", "case_id", "input_messages", "new_messages", "turn", "conversation_id", "vars", "attempt"}
    assert set(told) == always


def test_prompt_is_an_argument_and_stdin_is_empty(folder: Path) -> None:
    assert sh(folder, 'cat; echo "$1"', "{prompt}").text == "Hello?"


def test_input_file_holds_the_request(folder: Path) -> None:
    response = sh(folder, 'cat; printf "> "; cat "$1"', "{input_file}")
    assert json.loads(response.text[2:])["id"] == "case-1"


def test_attempt_and_case_id(folder: Path) -> None:
    request = Request(id="case-1", attempt=3)
    assert sh(folder, 'echo "$1"', "<{case_id}:{attempt}>", request=request).text == "<case-1:3>"


def test_workspace_is_private_and_fresh(folder: Path, temporary: Path) -> None:
    one = sh(folder, 'cd "$1"; pwd; ls -A; touch kept', "{workspace}").text
    two = sh(folder, 'cd "$1"; pwd; ls -A', "{workspace}").text
    assert Path(one).parent == temporary
    assert one != two
    assert (
        sh(
            folder, "stat -c %a {workspace} || stat -f %Lp {workspace}".replace("{workspace}", '"$1"'), "{workspace}"
        ).text
        == "700"
    )


def test_no_workspace_is_made_for_nothing(folder: Path) -> None:
    assert sh(folder, 'ls -A "$TMPDIR"; echo none').text == "none"


def test_placeholders_are_replaced_once_and_nothing_else_is(folder: Path) -> None:
    request = Request(id="{attempt}", input_messages=(Message(role="user", content="{case_id} {{prompt}}"),))
    arguments = ["{prompt}|{case_id}", "{ {attempt} }", '{"a": {"b": "{}"}}', "{unknown}", "{ prompt }", "${HOME}"]
    response = sh(folder, 'for a in "$@"; do printf "%s\n" "$a"; done', *arguments, request=request)
    assert response.text.split("\n") == [
        "{case_id} {{prompt}}|{attempt}",
        "{ 1 }",
        '{"a": {"b": "{}"}}',
        "{unknown}",
        "{ prompt }",
        "${HOME}",
    ]


@pytest.mark.parametrize("case_id", HOSTILE_IDS)
def test_ids_never_become_paths(case_id: str, folder: Path, temporary: Path) -> None:
    request = Request(id=case_id, input_messages=ASK)
    script = 'dirname "$1"; dirname "$2"; echo "$3"; printf "%s" "$4"'
    response = sh(folder, script, "{input_file}", "{output_file}", "{workspace}", "{case_id}", request=request)
    first, second, third, told = response.text.split("\n", 3)
    assert first == second == third
    assert Path(first).parent == temporary
    assert told == case_id.replace("\ud800", "\ufffd")
    assert sorted(path.name for path in folder.parent.iterdir()) == ["evals", "temporary"]
    assert list(folder.iterdir()) == []


def test_working_directory_and_relative_program(folder: Path) -> None:
    program = folder / "agent.sh"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    assert invoke(folder, "./agent.sh").text == str(folder.resolve())


def test_environment_is_a_list_of_what_may_pass(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", "granted")
    monkeypatch.setenv("OTHER_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    lines = invoke(folder, "env", env=("AGENT_KEY", "NOT_SET")).text.split("\n")
    found = dict(line.split("=", 1) for line in lines)
    assert set(found) <= {"PATH", "HOME", "LANG", "TMPDIR", "AGENT_KEY", orphans.MARKER}
    assert found["AGENT_KEY"] == "granted"
    assert found["LANG"] == "C.UTF-8"
    assert Cli(command=("env",), env=("AGENT_KEY",)).variable_names == ("AGENT_KEY",)


def test_prompt_of_the_greatest_length(folder: Path) -> None:
    request = Request(id="x", input_messages=(Message(role="user", content="x" * 131_071),))
    assert sh(folder, 'echo "${#1}"', "{prompt}", request=request).text == "131071"


@pytest.mark.parametrize("prompt", ["x" * 131_072, "é" * 70_000, "a\0b"], ids=["long", "long in UTF-8", "NUL"])
def test_prompt_that_is_no_argument(prompt: str, folder: Path) -> None:
    request = Request(id="x", input_messages=(Message(role="user", content=prompt),))
    kind, message, retryable = error_of(sh(folder, "echo no", "{prompt}", request=request))
    assert (kind, retryable) == ("transport", False)
    assert "`{input_file}`" in message
    assert len(message) < 400
    assert sh(folder, "wc -c < $1 | tr -d ' '", "{input_file}", request=request).success


def test_arguments_too_long_together(folder: Path) -> None:
    request = Request(id="x", input_messages=(Message(role="user", content="x" * 130_000),))
    kind, message, retryable = error_of(sh(folder, "echo no", *["{prompt}"] * 100, request=request))
    assert (kind, retryable) == ("transport", False)
    assert "`{input_file}`" in message


# What is made of what it prints


def test_plain_text(folder: Path) -> None:
    response = printing(folder, "  Hi there\n\nBye\n\n")
    assert (response.success, response.text, response.output_messages) == (True, "  Hi there\n\nBye", None)
    assert response.latency_ms is not None
    assert response.latency_ms > 0


def test_bytes_that_are_no_text(folder: Path) -> None:
    assert printing(folder, b"\xef\xbb\xbfa\xff\0b\xed\xa0\x80c").text == "a\ufffd\ufffdb\ufffd\ufffd\ufffdc"


def test_reply(folder: Path) -> None:
    response = printing(folder, json.dumps({**REPLY, "latency_ms": 5, "usage": {"input_tokens": 3}}, indent=2))
    assert response.text == "Hi"
    assert response.output_messages is not None
    assert response.output_messages[0].tool_calls[0].tool == "search"
    assert response.latency_ms == 5
    assert response.tokens_usage is not None


def test_list_of_messages(folder: Path) -> None:
    response = printing(folder, json.dumps(REPLY["output_messages"]))
    assert response.text == "Hi"
    assert response.output_messages is not None


@pytest.mark.parametrize(
    "value",
    [{"city": "Paris"}, [1, 2], ["a"], [{"name": "Bob", "role": "admin"}], {"metadata": {}, "warnings": 1}],
)
def test_json_of_another_kind_is_the_answer(value: Any, folder: Path) -> None:
    response = printing(folder, json.dumps(value) + "\n")
    assert response.success
    assert (json.loads(response.text), response.raw_response) == (value, value)
    assert response.output_messages is None
    assert "no known shape is taken as the answer" in response.warnings[0]


def test_json_lines_are_data(folder: Path) -> None:
    lines = [{"role": "assistant", "tool_calls": [{"tool": "search"}]}, {"role": "assistant", "content": "Hi"}]
    response = printing(folder, "\n".join(map(json.dumps, lines)))
    assert response.text == "Hi"
    assert [call.tool for message in response.output_messages or () for call in message.tool_calls] == ["search"]


@pytest.mark.parametrize(
    "text",
    [
        "[link](there) and more",
        "[x] done",
        "{name}, hello",
        '{"city": "Par',
        "[1, 2",
        "[]: nothing",
        "{",
        '{"a" is it}',
    ],
)
def test_text_that_only_begins_like_json(text: str, folder: Path) -> None:
    response = printing(folder, text)
    assert (response.success, response.text, response.raw_response) == (True, text, None)


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "Hi',
        '{"id": "x", "output_messages": [{"role": "assis',
        '\n {\n"messages": [}',
        '[{"role": "assistant", "content": "H',
        '{"text": "Hi"}\nDone.',
    ],
)
def test_broken_reply_is_no_answer(text: str, folder: Path) -> None:
    kind, message, retryable = error_of(printing(folder, text))
    assert (kind, retryable) == ("protocol", False)
    assert "line " in message
    assert "column " in message


def test_deep_reply_is_no_answer(folder: Path) -> None:
    assert error_of(printing(folder, '{"text": ' + "[" * 200_000))[0] == "protocol"


def test_logs_before_a_reply_are_pointed_out(folder: Path) -> None:
    response = printing(folder, 'loading\n{"text": "Hi"}\n')
    assert response.text == 'loading\n{"text": "Hi"}'
    assert "print logs to stderr" in response.warnings[0]


def test_reply_that_says_nothing_is_pointed_out(folder: Path) -> None:
    assert "neither `text`" in printing(folder, '{"success": true, "answer": 4}').warnings[0]


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_nothing_printed(text: str, folder: Path) -> None:
    kind, message, _ = error_of(printing(folder, text, "cat printed; echo why >&2"))
    assert (kind, "printed nothing" in message) == ("protocol", True)


def test_long_text_is_cut_with_a_warning(folder: Path) -> None:
    response = printing(folder, "a" * 5_000 + "b" * 5_000, max_output_bytes=100)
    assert response.success
    assert response.text == "a" * 50 + "\n[… 9,900 bytes left out …]\n" + "b" * 50
    assert "`max_output_bytes`" in response.warnings[0]


def test_long_reply_is_an_error_that_says_so(folder: Path) -> None:
    kind, message, _ = error_of(printing(folder, json.dumps({"text": "x" * 5_000}), max_output_bytes=100))
    assert kind == "protocol"
    assert "longer than 100 bytes" in message


def test_stderr_of_a_program_that_succeeds_is_dropped(folder: Path) -> None:
    response = sh(folder, "echo noise >&2; echo Hi")
    assert "noise" not in str(response)


# How it ends


def test_exit_code(folder: Path) -> None:
    kind, message, retryable = error_of(sh(folder, "seq 1 1000 >&2; echo partial; exit 3"))
    assert (kind, retryable) == ("agent", False)
    assert "exit code 3" in message
    assert message.endswith("\n999\n1000")
    assert len(message) < 1_100


def test_exit_code_without_stderr_shows_stdout(folder: Path) -> None:
    assert error_of(sh(folder, "echo why; exit 1"))[1].endswith("exit code 1: why")


def test_exit_code_that_asks_to_try_again(folder: Path) -> None:
    assert error_of(sh(folder, "exit 75"))[2]


def test_signal(folder: Path) -> None:
    kind, message, retryable = error_of(sh(folder, "echo oh >&2; kill -SEGV $$"))
    assert (kind, retryable) == ("agent", False)
    assert "SIGSEGV" in message


def test_own_error_is_kept_beside_the_exit_code(folder: Path) -> None:
    reply = json.dumps({"error": {"kind": "protocol", "message": "busy", "retryable": True}})
    assert error_of(printing(folder, reply, "cat printed; exit 2")) == ("protocol", "busy (exit code 2)", True)


def test_messages_of_a_program_that_failed_are_kept(folder: Path) -> None:
    response = printing(folder, json.dumps(REPLY), "cat printed; echo why >&2; exit 2")
    assert error_of(response) == ("agent", "the program ended with exit code 2: why", False)
    assert response.output_messages is not None


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("agentv-no-such-program",), "PATH"),
        (("plain",), "'./plain'"),
        (("./missing",), "relative to the working directory"),
        (("./plain",), "chmod +x"),
        (("./lost",), "interpreter"),
        (("./headless",), "#!/bin/sh"),
        (("./plain/x",), "no such file"),
    ],
)
def test_program_that_cannot_be_started(command: tuple[str, ...], said: str, folder: Path) -> None:
    (folder / "plain").write_text("echo\n")
    for name, text in (("lost", "#!/no/such/interpreter\n"), ("headless", "\0\1\2")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    kind, message, retryable = error_of(invoke(folder, *command))
    assert (kind, retryable) == ("transport", False)
    assert message.startswith(f"{command[0]!r} could not be started: ")
    assert said in message


def test_working_directory_that_is_not_there(folder: Path) -> None:
    kind, message, retryable = error_of(invoke(folder / "gone", "true"))
    assert (kind, retryable) == ("transport", False)
    assert "working directory" in message


def test_cancelled_leaves_nothing(folder: Path) -> None:
    script = 'sleep 1000 & echo $! > "$1/left"; cat "$1/left" > pid; echo waiting >&2; touch ready; sleep 1000'

    async def main() -> int:
        request = Request(id="x", input_messages=ASK)
        task = asyncio.create_task(invoke_async(folder, ("sh", "-c", script, "sh", "{workspace}"), request))
        end = time.monotonic() + 20
        while not (folder / "ready").exists():
            assert time.monotonic() < end
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.__notes__ == ["stderr ends: waiting"]
        return int((folder / "pid").read_text())

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(main()), 0)


# Files


def test_output_file(folder: Path) -> None:
    (folder / "printed").write_text(json.dumps(REPLY))
    assert sh(folder, 'echo log; cp printed "$1"', "{output_file}").text == "Hi"
    assert sh(folder, 'echo log; echo text > "$1"', "{output_file}").text == "text"


@pytest.mark.parametrize("script", ["echo out", 'echo out; : > "$1"'])
def test_output_file_missing_or_empty(script: str, folder: Path) -> None:
    assert sh(folder, script, "{output_file}").text == "out"


def test_output_file_too_large(folder: Path) -> None:
    response = sh(folder, 'seq 1 1000 > "$1"', "{output_file}", max_output_bytes=20)
    assert response.text == "1\n2\n3\n4\n5\n\n[… 3,873 bytes left out …]\n\n999\n1000"
    assert "{output_file}" in response.warnings[0]


@pytest.mark.parametrize("script", ["ln -s /etc/passwd $1", "mkfifo $1", "mkdir $1", "ln -s $1 $1"])
def test_output_file_that_is_none(script: str, folder: Path) -> None:
    kind, message, _ = error_of(sh(folder, f"{script}; echo out", "{output_file}"))
    assert (kind, "{output_file}" in message) == ("protocol", True)


def test_trace_in_the_workspace_is_read(folder: Path) -> None:
    trace = '{"events": [{"type": "tool_call", "name": "search"}]}'
    for name in ("trace.json", "$1/trace.json"):
        script = f'echo \'{trace}\' > $1/trace.json; echo \'{{"text": "Hi", "trace_ref": "\'{name}\'"}}\''
        response = sh(folder, script, "{workspace}")
        assert response.trace is not None
        assert [event.name for event in response.trace] == ["search"]
        assert (response.trace_ref, response.warnings) == (None, ())


def test_trace_is_read_beside_messages_too_since_the_workspace_is_removed(folder: Path) -> None:
    (folder / "printed").write_text(json.dumps({**REPLY, "trace_ref": "trace.json"}))
    response = sh(folder, "echo '[]' > $1/trace.json; cat printed", "{workspace}")
    assert (response.trace, response.trace_ref) == ((), None)


@pytest.mark.parametrize("ref", ["/etc/passwd", "../../etc/passwd", "elsewhere.json", "a\0b"])
def test_trace_elsewhere_is_left_to_others(ref: str, folder: Path) -> None:
    response = printing(folder, json.dumps({"text": "Hi", "trace_ref": ref}))
    again = sh(folder, "cat printed", "{workspace}")
    assert again.trace is None
    assert again.trace_ref == response.trace_ref


def test_trace_behind_a_link_is_refused(folder: Path) -> None:
    (folder / "secret.json").write_text('[{"type": "tool_call", "name": "secret"}]')
    (folder / "printed").write_text('{"text": "Hi", "trace_ref": "trace.json"}')
    response = sh(folder, "ln -s $PWD/secret.json $1/trace.json; cat printed", "{workspace}")
    assert (response.trace, response.trace_ref) == (None, "trace.json")
    assert "outside" in response.unread[0].reason


@pytest.mark.parametrize(
    "script", ["mkdir -p $1/a/b; touch $1/a/b/c; chmod 500 $1/a/b; chmod 0 $1/a; chmod 0 $1", "rmdir $1; ln -s $PWD $1"]
)
def test_workspace_is_removed_whatever_was_done_to_it(script: str, folder: Path) -> None:
    (folder / "kept").touch()
    assert sh(folder, f"{script}; echo done", "{workspace}").text == "done"
    assert (folder / "kept").exists()
    assert stat.S_IMODE(folder.stat().st_mode) & 0o700 == 0o700


# How it is written


def problems(*command: str, **options: Any) -> list[str]:
    return [str(problem) for problem in Cli(command=command, **options).check("targets[0]")]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("promt", "prompt"),
        ("PROMPT", "prompt"),
        ("input", "input_file"),
        ("outputFile", "output_file"),
        ("case", "case_id"),
    ],
)
def test_near_misses_are_errors(name: str, meant: str) -> None:
    expected = f"targets[0].command[1]: unknown placeholder `{{{name}}}`; did you mean `{{{meant}}}`?"
    assert problems("agent", f"--x={{{name}}}") == [expected]


def test_other_braces_are_fine() -> None:
    assert problems("agent", '{"prompt": 1}', "{}", "{x}", "${PROMPT}", "{a,b}", "{ {a} }", "{prompt}{workspace}") == []


def test_commands_that_are_wrong() -> None:
    assert "write ['echo', 'hi']" in problems("echo hi")[0]
    assert "first item" in problems("")[0]
    assert "first item" in problems()[0]
    assert "a request cannot choose it" in problems("{prompt}")[0]
    text: Any = "echo hi"
    assert "expected a list" in str(Cli(command=text).check("t")[0])


def test_types_are_checked() -> None:
    with pytest.raises(msgspec.ValidationError, match="array"):
        msgspec.convert({"command": "echo hi"}, Cli)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"command": []}, Cli)
    assert msgspec.convert({"provider": "cli", "command": ["echo"]}, Cli).mode == "single"


def test_env_holds_names() -> None:
    found = problems("agent", env=("OK_1", "A=b", "${HOME}", ""))
    assert [line.partition(":")[0] for line in found] == [f"targets[0].env[{index}]" for index in (1, 2, 3)]


def test_it_executes() -> None:
    assert Cli.executes
