"""`http` from a file to a result: `agentv eval` against a real endpoint."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.endpoint import answering, events, in_turn, serving, streaming
from tests.support.command import Command, command_in, statuses

KEY = "topsecret-0a1b2c3d4e5f"

EVAL = """
targets:
  - name: endpoint
    provider: http
    url: ${AGENT_URL}/chat/{{ vars.tenant }}
    headers: {Authorization: "Bearer ${AGENT_KEY}", X-Case: "{{ id }}"}
    body:
      model: support-1
      messages: "{{ messages }}"
      session: "{{ thread_id }}"
      note: "case {{ id }}, attempt {{ attempt }}"
    retries: 1
defaults:
  vars: {tenant: acme}
cases:
  - id: refund
    input: Please refund {{ tenant }} order A-17.
    evaluators:
      - {type: tool_trajectory, mode: exact, expected: [{tool: find_order, args: {order: A-17}}, {tool: refund}]}
      - {type: contains, all: [refunded]}
      - {type: token_budget, max_total: 10}
  - id: refused
    input: Refund everything.
    evaluators: [{type: tool_trajectory, maximums: {refund: 0}}]
"""


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return command_in(tmp_path)


def call(at: int, name: str, arguments: str) -> dict[str, Any]:
    return {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": arguments}}


async def agent(asked: web.Request) -> web.StreamResponse:
    """Streams what it does, as OpenAI would; it repeats the key that it was given, as it should not."""
    body = await asked.json()
    if asked.headers.get("Authorization") != f"Bearer {KEY}":
        return web.json_response({"error": {"message": "no such key"}}, status=401)
    if body["messages"][-1]["content"] == "Refund everything.":
        return web.json_response({"choices": [{"message": {"role": "assistant", "content": f"No, {KEY}."}}]})
    deltas = [
        {"role": "assistant", "tool_calls": [call(0, "find_order", '{"order":')]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "A-17"}'}}, call(1, "refund", "{}")]},
        {"content": "It is "},
        {"content": "refunded."},
    ]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last = {
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 6, "completion_tokens": 3},
    }
    return await streaming(events(*chunks, last, done=True))(asked)


def test_an_endpoint_is_asked_measured_and_its_key_stays_secret(run: Command) -> None:
    run.write("support.eval.yaml", EVAL)
    with serving(agent) as endpoint:
        env = {"AGENT_URL": endpoint.url, "AGENT_KEY": KEY}
        done = run("eval", "support.eval.yaml", "--out", "results.jsonl", "--include-messages", env=env)
    assert done.code == 0, done
    assert statuses(run.records()) == {"refund": "pass", "refused": "pass"}
    refund = next(record for record in run.records() if record["case_id"] == "refund")
    assert refund["tokens_usage"]["total_tokens"] == 9
    asked = next(each for each in endpoint.asked if each.header("x-case") == "refund")
    assert asked.path == "/chat/acme"
    assert asked.json == {
        "model": "support-1",
        "messages": [{"role": "user", "content": "Please refund acme order A-17."}],
        "note": "case refund, attempt 1",
    }
    for file in run.folder.rglob("*"):
        if file.is_file():
            assert KEY not in file.read_text(errors="replace"), file
    assert KEY not in done.out + done.err


def test_a_wrong_key_is_an_error_of_every_case_and_shows_nothing_of_it(run: Command) -> None:
    run.write("support.eval.yaml", EVAL)
    wrong = "wrong-key-99887766"
    with serving(agent) as endpoint:
        done = run("eval", "support.eval.yaml", env={"AGENT_URL": endpoint.url, "AGENT_KEY": wrong})
        assert len(endpoint.asked) == 2
    assert done.code == 3
    assert "answered 401: no such key" in done.out + done.err
    assert wrong not in done.out + done.err


def test_a_failure_that_may_pass_is_tried_again(run: Command) -> None:
    replies = in_turn(answering({"detail": "warming up"}, status=503), answering({"output_messages": [
        {"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "search"}]}
    ]}))  # fmt: skip
    evaluator = {"type": "tool_trajectory", "minimums": {"search": 1}}
    with serving(replies) as endpoint:
        target = {"name": "agent", "provider": "http", "url": endpoint.url, "retries": 1}
        run.write("a.eval.yaml", {"targets": [target], "cases": [{"id": "a", "input": "x", "evaluators": [evaluator]}]})
        done = run("eval", "a.eval.yaml", "--out", "results.jsonl")
        assert [each.json["attempt"] for each in endpoint.asked] == [1, 2]
    assert done.code == 0, done
    (record,) = run.records()
    assert (record["status"], record["attempts"]) == ("pass", 2)
    assert "warming up" in json.dumps(record["warnings"])


def test_a_retry_begins_a_conversation_of_its_own(run: Command) -> None:
    replies = in_turn(answering({"detail": "warming up"}, status=503), answering({"text": "Hi"}))
    with serving(replies) as endpoint:
        target = {
            "name": "agent",
            "provider": "http",
            "url": f"{endpoint.url}/{{{{ thread_id }}}}",
            "new_thread_id": True,
        }
        case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "Hi"}]}
        run.write("a.eval.yaml", {"targets": [target], "cases": [case]})
        assert run("eval", "a.eval.yaml", "--out", "results.jsonl").code == 0
        first, second = [each.path.strip("/") for each in endpoint.asked]
    assert first != second
    assert run.records()[0]["thread_id"] == second


def test_an_unknown_shape_tells_what_to_write_into_the_file(run: Command) -> None:
    with serving(answering({"result": {"final": "Hi"}})) as endpoint:
        target = {"name": "agent", "provider": "http", "url": endpoint.url}
        case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "all": ["Hi"]}]}
        run.write("a.eval.yaml", {"targets": [target], "cases": [case]})
        done = run("eval", "a.eval.yaml")
        assert done.code == 0  # the document is the answer
        assert "`reply: {text: /result/final}`" in done.out
        run.write("a.eval.yaml", {"targets": [{**target, "reply": {"text": "/result/final"}}], "cases": [case]})
        assert run("eval", "a.eval.yaml").code == 0


def test_mistakes_are_found_with_their_places_and_nothing_is_sent(run: Command) -> None:
    with serving(answering({})) as endpoint:
        run.write(
            "a.eval.yaml",
            f"""targets:
  - name: agent
    provider: http
    url: {endpoint.url}
    body:
      messages: "{{{{ mesages }}}}"
    reply: {{text: answer}}
cases:
  - {{id: a, input: x, evaluators: [{{type: contains, all: [x]}}]}}
""",
        )
        done = run("validate", "a.eval.yaml")
        assert endpoint.asked == []
    assert done.code == 2
    assert "a.eval.yaml:6:17: {{ mesages }} is not a placeholder" in done.out + done.err
    assert "Did you mean 'messages'?" in done.out + done.err
    assert "a.eval.yaml:7:19: text: not a JSON pointer" in done.out + done.err


def test_help_and_validate_load_no_http_client(run: Command) -> None:
    run.write("a.eval.yaml", EVAL)
    import subprocess  # noqa: PLC0415 - a process of its own, to see what it loads
    import sys  # noqa: PLC0415 - as above

    code = "import sys; from agentv.cli.main import main; sys.argv[1:] = ['validate', 'a.eval.yaml']\n"
    code += "try: main()\nexcept SystemExit: pass\nassert 'aiohttp' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=run.folder, env=run.environment(), check=True, timeout=60)
