"""A reply is read alike by all entry points: `score`, `python`, `replay`, `cli`, `http`, and the store."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import agentv
from agentv.formats.reader import decode_response, read_reply
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.cli.output import ProgramOutput, read_printed
from agentv.providers.http.events import ReceivedEvents, read_events
from agentv.providers.http.pointers import Pointers
from agentv.providers.http.response import ReplySettings, read_document
from agentv.providers.python.call import AgentCallable
from agentv.providers.replay import Replay
from agentv.providers.transport.failures import HttpResponse, TransportError
from tests.support.samples import Sample, sample, sample_names

ASKED = (Message(role="user", content="What is the weather in Paris?"),)
REQUEST = Request(id="case", input_messages=ASKED)
READING = ReplySettings(pointers=Pointers(), done=None, events=(), snapshots=False)
WHOLE = sample_names("json", "text")
Way = Callable[[Sample, Path], ProviderResponse]


def by_reader(given: Sample, folder: Path) -> ProviderResponse:
    del folder
    return read_reply(given.reply if given.form == "json" else given.text, ASKED)


def by_score(given: Sample, folder: Path) -> ProviderResponse:
    del folder
    seen: list[ProviderResponse] = []

    @agentv.evaluator
    def look(ctx: agentv.Context) -> bool:
        seen.append(ctx.response)
        return True

    result = agentv.score(given.reply if given.form == "json" else given.text, [look()], input_messages=ASKED)
    return seen[0] if seen else ProviderResponse(success=False, error=result.error)


def by_python(given: Sample, folder: Path) -> ProviderResponse:
    del folder
    reply = given.reply if given.form == "json" else given.text
    return asyncio.run(AgentCallable(lambda: lambda prompt: reply if prompt else None).invoke(REQUEST))


def by_cli(given: Sample, folder: Path) -> ProviderResponse:
    del folder
    return read_printed(ProgramOutput(given.text.encode(), truncated=False), 10_000_000, ASKED)


def by_replay(given: Sample, folder: Path) -> ProviderResponse:
    (folder / "reply.json").write_text(given.text, encoding="utf-8")

    async def ask() -> ProviderResponse:
        provider = Replay(file="reply.json")
        session = await provider.open(Scope(root=str(folder), folder=str(folder)))
        return await session.invoke(REQUEST)

    return asyncio.run(ask())


def by_http(given: Sample, folder: Path) -> ProviderResponse:
    del folder
    kind = "application/json" if given.form == "json" else "text/plain"
    answer = HttpResponse(status=200, headers={"content-type": kind}, body=given.text.encode(), url="http://localhost")
    response = read_document(answer, READING, ASKED)
    metadata = {key: value for key, value in (response.metadata or {}).items() if key != "shape"}
    return replace(response, metadata=metadata or None)


WAYS: dict[str, Way] = {
    "score": by_score,
    "python": by_python,
    "cli": by_cli,
    "replay": by_replay,
    "http": by_http,
}


def facts(response: ProviderResponse) -> dict[str, Any]:
    """Return the parts of a reply that must not depend on the entry point."""
    return {
        "success": response.success,
        "text": response.text,
        "messages": response.output_messages,
        "trace": response.trace,
        "usage": response.tokens_usage,
        "thread": response.thread_id,
        "unread": response.unread,
        "echo_end": response.echo_end,
    }


@pytest.mark.parametrize("name", WHOLE)
def test_a_reply_is_the_same_through_every_way_in(name: str, tmp_path: Path) -> None:
    given = sample(name)
    expected = facts(by_reader(given, tmp_path))
    for way, read in WAYS.items():
        if given.form == "text" and way == "replay":
            continue  # a recording is JSON
        found = read(given, tmp_path)
        if not expected["success"]:
            assert not found.success
            continue  # nobody evaluates such a reply, and the endpoint's own error says more
        assert facts(found) == expected, way


@pytest.mark.parametrize("name", WHOLE)
def test_a_reply_that_was_stored_is_the_same_again(name: str, tmp_path: Path) -> None:
    response = by_reader(sample(name), tmp_path)
    again = decode_response(json.loads(dump_json(response)))
    assert facts(again) == facts(response)


def by_stream(given: Sample) -> ProviderResponse:
    """Read JSON Lines as the stream of an endpoint."""
    head = HttpResponse(status=200, url="http://localhost")
    events = [("message", json.dumps(line)) for line in given.reply]
    return read_events(ReceivedEvents(events, is_done=True), head, "ndjson", READING, ASKED)


@pytest.mark.parametrize("name", sample_names("jsonl"))
def test_json_lines_are_the_same_through_every_way_in(name: str, tmp_path: Path) -> None:
    given = sample(name)
    expected = facts(by_reader(given, tmp_path))
    for way in (by_python, by_cli, *([by_score] if expected["success"] else [])):
        assert facts(way(given, tmp_path)) == expected, way.__name__
    try:
        streamed = by_stream(given)
    except (agentv.FormatError, TransportError):
        return  # a stream of no known kind, or one that says it failed: an error, never an answer
    if streamed.success:
        calls = [call for message in streamed.output_messages or () for call in message.tool_calls]
        assert calls == [call for message in expected["messages"] or () for call in message.tool_calls]
