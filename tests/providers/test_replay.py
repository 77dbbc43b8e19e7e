"""`replay`: replies that were recorded."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.replay import Replay

MESSAGES = [{"role": "assistant", "content": "hi", "tool_calls": [{"tool": "search"}]}]
TRACE = [{"type": "tool_call", "name": "search"}, {"type": "tool_result"}]


def ask(folder: Path, file: str, *requests: dict[str, Any]) -> list[ProviderResponse]:
    async def replay() -> list[ProviderResponse]:
        provider = Replay(file=file)
        session = await provider.open(Scope(root=str(folder), folder=str(folder)))
        replies = [await session.invoke(Request(**request)) for request in requests]
        await session.close()
        return replies

    return asyncio.run(replay())


def jsonl(folder: Path, *lines: Any) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / "recorded.jsonl").write_text("\n".join(texts))


def test_a_reply_is_found_by_case_id(tmp_path: Path) -> None:
    jsonl(
        tmp_path,
        {"id": "a", "text": "first"},
        {"id": 2, "output_messages": MESSAGES, "tokens_usage": {"input_tokens": 3}, "latency_ms": 7},
        {"case_id": "c", "trace": TRACE},
    )
    first, second, third = ask(tmp_path, "recorded.jsonl", {"id": "a"}, {"id": "2"}, {"id": "c"})
    assert first.text == "first"
    assert (second.text, second.latency_ms, second.tokens_usage.input_tokens) == ("hi", 7, 3)  # type: ignore[union-attr]
    assert [event.type for event in third.trace or ()] == ["tool_call", "tool_result"]
    assert first.metadata is None


def test_repetition_i_gets_the_ith_recording(tmp_path: Path) -> None:
    jsonl(tmp_path, {"id": "a", "text": "1"}, {"id": "b", "text": "x"}, {"id": "a", "text": "2"})
    replies = ask(tmp_path, "recorded.jsonl", *({"id": "a", "repeat": repeat} for repeat in range(3)))
    assert [reply.text for reply in replies] == ["1", "2", "1"]


def test_a_case_without_a_recording_is_an_error_that_names_bad_lines(tmp_path: Path) -> None:
    jsonl(tmp_path, "{broken", {"text": "no id"}, {"id": "a", "text": "fine"})
    missing, fine = ask(tmp_path, "recorded.jsonl", {"id": "z"}, {"id": "a"})
    assert missing.error is not None
    assert missing.error.message == (
        "recorded.jsonl holds no reply for case 'z'; not a JSON object with an `id`: lines 1, 2"
    )
    assert fine.text == "fine"


@pytest.mark.parametrize("data", [TRACE, {"trace": TRACE}, {"events": TRACE}, {"case_id": "c", "trace": TRACE}])
def test_a_trace_file_serves_every_case(tmp_path: Path, data: Any) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(data))
    for reply in ask(tmp_path, "trace.json", {"id": "a"}, {"id": "b"}):
        assert [event.type for event in reply.trace or ()] == ["tool_call", "tool_result"]


def test_a_file_for_each_case(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(MESSAGES))
    (tmp_path.parent / "secret.json").write_text("{}")
    found, *others = ask(
        tmp_path, "{case_id}.json", *({"id": name} for name in ("a", "b", "../secret", "x/y", "CON\0"))
    )
    assert found.text == "hi"
    assert all(reply.error is not None and reply.error.kind == "protocol" for reply in others)


@pytest.mark.parametrize("file", ["../secret.jsonl", "/etc/passwd", "missing.jsonl", "folder"])
def test_files_elsewhere_are_refused(tmp_path: Path, file: str) -> None:
    (tmp_path.parent / "secret.jsonl").write_text('{"id": "a", "text": "x"}')
    (tmp_path / "folder").mkdir()
    (reply,) = ask(tmp_path, file, {"id": "a"})
    assert reply.error is not None
    assert not reply.success
