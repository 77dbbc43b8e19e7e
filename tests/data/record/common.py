"""Shared by recording scripts: texts and numbers of the scenarios, fixed ids and times, and saving."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPLIES = Path(os.environ.get("RECORD_INTO") or Path(__file__).parent.parent / "replies")
REAL = "real library"
TYPES = "built with the library's types"
CLIENT = "real client, bodies written by hand"
HAND = "written by hand"

QUESTION = "What is the weather in Paris?"
ANSWER = "It is 18 C in Paris."
QUESTION_PARALLEL = "Compare the weather in Paris and Rome, then tell me the time in Rome."
ANSWER_PARALLEL = "Paris has 18 C, Rome has 24 C, and in Rome it is 12:00."
QUESTION_FAILED = "What is the weather in Atlantis?"
ANSWER_FAILED = "I could not find the weather in Atlantis."
FAILURE = "no such city: Atlantis"
QUESTION_PLAIN = "Hello!"
ANSWER_PLAIN = "Hello, how can I help?"
QUESTION_DELETE = "Delete the file notes.txt."
ANSWER_DENIED = "I did not delete notes.txt."
THOUGHT = "The user wants the weather, so I look it up."
WEATHER = {"Paris": "18 C", "Rome": "24 C"}

# What each step of the model costs: (input tokens, output tokens).
STEPS = {
    "call": [(50, 10), (70, 8)],
    "parallel": [(100, 20), (150, 10), (180, 15)],
    "failed": [(50, 10), (80, 9)],
    "plain": [(30, 7)],
    "delete": [(40, 12), (60, 6)],
}

QUESTIONS = {
    "call": QUESTION,
    "thinking": QUESTION,
    "parallel": QUESTION_PARALLEL,
    "failed": QUESTION_FAILED,
    "plain": QUESTION_PLAIN,
    "delete": QUESTION_DELETE,
}


@dataclass(frozen=True)
class Step:
    """One step of a scripted model: calls as (id, tool, input), or a text."""

    given: int
    made: int
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    text: str = ""
    thought: str = ""


def script(scenario: str) -> list[Step]:
    """The steps of the scripted model in a scenario."""
    paris = ("call_1", "get_weather", {"city": "Paris"})
    rome = ("call_2", "get_weather", {"city": "Rome"})
    clock = ("call_3", "get_time", {"zone": "Europe/Rome"})
    lost = ("call_1", "get_weather", {"city": "Atlantis"})
    notes = ("call_1", "delete_file", {"path": "notes.txt"})
    said: dict[str, list[tuple[tuple[Any, ...], str, str]]] = {
        "call": [((paris,), "", ""), ((), ANSWER, "")],
        "thinking": [((paris,), "", THOUGHT), ((), ANSWER, "")],
        "parallel": [((paris, rome), "I look both up.", ""), ((clock,), "", ""), ((), ANSWER_PARALLEL, "")],
        "failed": [((lost,), "", ""), ((), ANSWER_FAILED, "")],
        "plain": [((), ANSWER_PLAIN, "")],
        "delete": [((notes,), "", ""), ((), ANSWER_DENIED, "")],
    }
    counts = STEPS["call" if scenario == "thinking" else scenario]
    return [Step(*count, *step) for count, step in zip(counts, said[scenario], strict=True)]


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_EPOCH = 1767225600  # 2026-01-01T00:00:00Z
_TOOK = re.compile(r"(?<=completed in )\d+\.\d+s")
_FRAMES = re.compile(r"(?<=Traceback \(most recent call last\):\n)(?: +.*\n)+")
_PLACE = re.compile(r"(?:/(?:work|root|home|tmp|usr|opt|Users)/)[^\s\"']*")


def weather(city: str) -> str:
    """Return the result of the tool `get_weather`."""
    if city not in WEATHER:
        message = f"no such city: {city}"
        raise ValueError(message)
    return WEATHER[city]


def time_in(zone: str) -> str:
    """Return the result of the tool `get_time`."""
    return "12:00" if zone == "Europe/Rome" else "11:00"


def call(tool: str, given: Any, number: int | str | None = None, **more: Any) -> dict[str, Any]:
    """One expected call; `number` is its id, 1 standing for `call_1`."""
    shown: dict[str, Any] = {"tool": tool, "input": given}
    if number is not None:
        shown["id"] = f"call_{number}" if isinstance(number, int) else number
    return {**shown, **more}


def paris(number: int | str | None = 1, output: Any = "18 C", **more: Any) -> list[dict[str, Any]]:
    """The one call of the scenario `call`."""
    return [call("get_weather", {"city": "Paris"}, number, output=output, **more)]


def three(
    ids: tuple[int | str | None, ...] = (1, 2, 3), outputs: Iterable[Any] = (), **more: Any
) -> list[dict[str, Any]]:
    """The calls of the scenario `parallel`."""
    first, second, third = tuple(outputs) or ("18 C", "24 C", "12:00")
    return [
        call("get_weather", {"city": "Paris"}, ids[0], output=first, **more),
        call("get_weather", {"city": "Rome"}, ids[1], output=second, **more),
        call("get_time", {"zone": "Europe/Rome"}, ids[2], output=third, **more),
    ]


def atlantis(number: int | str | None = 1, **more: Any) -> list[dict[str, Any]]:
    """The one call of the scenario `failed`; what became of it differs from library to library."""
    return [call("get_weather", {"city": "Atlantis"}, number, **more)]


def notes(number: int | str | None = 1, **more: Any) -> list[dict[str, Any]]:
    """The one call of the scenarios `denied` and `pending`."""
    return [call("delete_file", {"path": "notes.txt"}, number, **more)]


def usage(scenario: str, steps: slice = slice(None), **more: int) -> dict[str, int]:
    """The usage that a scenario adds up to."""
    taken = STEPS[scenario][steps]
    given, made = sum(step[0] for step in taken), sum(step[1] for step in taken)
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made, **more}


def expect(
    calls: list[dict[str, Any]] | None,
    text: str | None,
    usage: dict[str, int] | None = None,
    thread_id: str | None = None,
) -> dict[str, Any]:
    """The facts that a reader must find. `calls` is None if this form does not report calls."""
    return {"calls": calls, "text": text, "usage": usage, "thread_id": thread_id}


class Scrubber:
    """Random ids become numbered ones, in order of appearance; times become one time; paths lose their folders."""

    def __init__(self, ids: Iterable[str] = (), durations: Iterable[str] = ()) -> None:
        self._ids = [re.compile(pattern) for pattern in ids]
        self._durations = set(durations)
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def __call__(self, value: Any, key: str = "") -> Any:
        """The same data with nothing in it that differs from run to run."""
        if isinstance(value, dict):
            return {
                self._text(name) if isinstance(name, str) else name: self(each, name) for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self(each, key) for each in value]
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value, key)
        return value

    def _number(self, value: float, key: str) -> float:
        kind = type(value)
        if key in self._durations:
            return kind(1)
        for scale in (1, 10**3, 10**6, 10**9):
            if 1.7e9 * scale < value < 2.1e9 * scale:
                return kind(_EPOCH * scale)
        return value

    def _text(self, text: str) -> str:
        for pattern in self._ids:
            text = pattern.sub(self._numbered, text)
        text = _UUID.sub(self._uuid, text)
        text = _HEX.sub(self._hex, text)
        text = _TIME.sub("2026-01-01T00:00:00Z", text)
        text = _TOOK.sub("1.0s", text)
        text = _FRAMES.sub("  ...\n", text)
        return _PLACE.sub("...", text)

    def _numbered(self, found: re.Match[str]) -> str:
        """`tooluse_Xy12` becomes `tooluse_1`: a group named `keep` is kept."""
        keep = found.groupdict().get("keep") or ""
        if found[0] not in self._known:
            self._known[found[0]] = f"{keep}{self._next(keep)}"
        return self._known[found[0]]

    def _uuid(self, found: re.Match[str]) -> str:
        if found[0].startswith("00000000-"):
            return found[0]
        if found[0] not in self._known:
            self._known[found[0]] = f"00000000-0000-4000-8000-{self._next('uuid'):012d}"
        return self._known[found[0]]

    def _hex(self, found: re.Match[str]) -> str:
        if found[0] not in self._known:
            self._known[found[0]] = f"{self._next('hex'):032d}"
        return self._known[found[0]]

    def _next(self, kind: str) -> int:
        self._counts[kind] += 1
        return self._counts[kind]


class Recorder:
    """Saves the replies of one system."""

    def __init__(
        self,
        system: str,
        library: str,
        made_by: str = REAL,
        ids: Iterable[str] = (),
        durations: Iterable[str] = (),
    ) -> None:
        self._head = {"system": system, "library": library, "version": version(library), "made_by": made_by}
        self._system = system
        self._ids = tuple(ids)
        self._durations = tuple(durations)
        for old in REPLIES.glob(f"{system}.*.json"):
            if "source" not in json.loads(old.read_text(encoding="utf-8")):  # else it was made elsewhere
                old.unlink()

    def save(
        self,
        name: str,
        scenario: str,
        what: str,
        reply: Any,
        expect: dict[str, Any],
        note: str = "",
        made_by: str = "",
    ) -> None:
        """Write one file; `name` is the part of its name after the system's."""
        scrub = Scrubber(self._ids, self._durations)
        plain = json.loads(json.dumps(reply))
        record = {**self._head, "scenario": scenario, "what": what}
        if made_by:
            record["made_by"] = made_by
        if note:
            record["note"] = note
        record["reply"] = scrub(plain)
        record["expect"] = scrub(expect)
        path = REPLIES / f"{self._system}.{name}.json"
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        size = len(text.encode())
        if size > 30_000:
            print(f"{path.name}: {size} bytes, too large")
        path.write_text(text, encoding="utf-8")
        self._look(path.name, record)

    def _look(self, name: str, record: dict[str, Any]) -> None:
        """A mistake in what is expected shows when the words are nowhere in the reply."""
        reply = json.dumps(record["reply"], ensure_ascii=False)
        wanted = record["expect"]
        for each in wanted["calls"] or ():
            for word in (each["tool"], each.get("id")):
                if word and str(word) not in reply:
                    print(f"{name}: {word!r} is expected but not in the reply")
            shown = each.get("output")
            if isinstance(shown, str) and json.dumps(shown, ensure_ascii=False)[1:-1] not in reply:
                print(f"{name}: output {shown!r} is expected but not in the reply")
        if "stream" not in name and wanted["text"] and json.dumps(wanted["text"])[1:-1] not in reply:
            print(f"{name}: text {wanted['text']!r} is expected but not in the reply")
