"""Sample replies of real systems in `tests/data/replies`, and what a reader must find in them."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from agentv.formats.reader import read_events, read_reply
from agentv.formats.streams import StreamEvent
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse

FOLDER = Path(__file__).parents[1] / "data" / "replies"


class Sample(NamedTuple):
    """One file."""

    name: str
    form: str
    """`json`, `jsonl`, `sse` or `text`."""
    reply: Any
    expect: dict[str, Any]
    made_by: str
    version: str
    is_recorded: bool = True
    """True if a script of `tests/data/record` makes it."""

    @property
    def system(self) -> str:
        """The system that sent the reply."""
        return self.name.partition(".")[0]

    @property
    def has_calls(self) -> bool:
        """Return whether the agent made calls, in whatever form."""
        return bool(self.expect.get("calls")) or bool(self.expect.get("unread"))

    @property
    def has_none(self) -> bool:
        """Return whether it is known that the agent made no calls."""
        return self.expect.get("calls") == [] and not self.expect.get("unread") and "error" not in self.expect

    @property
    def text(self) -> str:
        """The reply as a program would print it."""
        if self.form == "jsonl":
            return "\n".join(json.dumps(line) for line in self.reply)
        return self.reply if isinstance(self.reply, str) else json.dumps(self.reply)


@cache
def samples() -> tuple[Sample, ...]:
    """Read every sample."""
    return read_samples(FOLDER)


def read_samples(folder: Path) -> tuple[Sample, ...]:
    """Read the samples of a folder."""
    return tuple(_read(path) for path in sorted(folder.glob("*.json")))


def _read(path: Path) -> Sample:
    data = json.loads(path.read_text(encoding="utf-8"))
    form, version = data.get("form", "json"), f"{data.get('library', '')} {data.get('version', '')}".strip()
    return Sample(path.stem, form, data["reply"], data["expect"], data["made_by"], version, "source" not in data)


def sample_names(*forms: str) -> list[str]:
    """Name the samples of these forms, of all without any."""
    return [sample.name for sample in samples() if not forms or sample.form in forms]


def sample(name: str) -> Sample:
    """Find a sample by its name."""
    return next(each for each in samples() if each.name == name)


def read_sample(given: Sample) -> ProviderResponse:
    """Read a sample as its form comes in: whole, as JSON Lines, or as the events of a stream."""
    if given.form != "sse":
        return read_reply(given.reply if given.form == "json" else given.text)
    events = [_event(event) for event in given.reply if event.get("data") != "[DONE]"]
    found = read_events(events)
    return read_reply([event.value for event in events]) if found is None else found.response


def _event(event: dict[str, Any]) -> StreamEvent:
    data = event.get("data")
    if isinstance(data, str):
        with suppress(ValueError):  # else it is the words themselves
            data = json.loads(data)
    return StreamEvent(data, event.get("event") or "message")


class Agreement(NamedTuple):
    """Return for each fact of a sample if it is read correctly; `None` if there is nothing to compare."""

    calls: bool | None
    """The tools and inputs of all calls, in order; for a reply without any, that it is known to have made none."""
    results: bool | None
    status: bool | None
    usage: bool | None
    text: bool | None


def agreement(given: Sample) -> Agreement:
    """Compare what is read of a sample with what is expected."""
    response, expect = read_sample(given), given.expect
    if "error" in expect:
        named = response.error is not None and expect["error"].lower() in response.error.message.lower()
        return Agreement(named, None, None, None, None)
    made = [call for message in response.output_messages or () for call in message.tool_calls]
    wanted = expect.get("calls")
    same = wanted is not None and [call.tool for call in made] == [call["tool"] for call in wanted]
    pairs = list(zip(made, wanted or (), strict=False)) if same else []
    return Agreement(
        None if wanted is None else same and _is_complete(response, given) and _agree(pairs, "input"),
        _held(pairs, "output") if same else (False if _has(wanted, "output") else None),
        _held(pairs, "status") if same else (False if _has(wanted, "status") else None),
        _usage(response, expect.get("usage")),
        None if expect.get("text") is None else response.text == expect["text"],
    )


def _is_complete(response: ProviderResponse, given: Sample) -> bool:
    if given.expect.get("unread") or given.expect.get("complete") is False:
        return bool(response.unread)
    spoke = any(message.role == "assistant" for message in response.output_messages or ())
    return not response.unread and (spoke or not response.success)


def _has(calls: list[dict[str, Any]] | None, key: str) -> bool:
    return any(key in call for call in calls or ())


def _held(pairs: list[tuple[ToolCall, dict[str, Any]]], key: str) -> bool | None:
    return _agree(pairs, key) if any(key in wanted for _, wanted in pairs) else None


def _agree(pairs: list[tuple[ToolCall, dict[str, Any]]], key: str) -> bool:
    return all(_value(call, key) == wanted[key] for call, wanted in pairs if key in wanted)


def _value(call: ToolCall, key: str) -> Any:
    return call.effective_status if key == "status" else getattr(call, key)


def _usage(response: ProviderResponse, wanted: dict[str, int] | None) -> bool | None:
    if not wanted:
        return None
    usage = response.tokens_usage
    return usage is not None and all(getattr(usage, key) == count for key, count in wanted.items())
