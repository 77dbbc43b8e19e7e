"""Speed and memory of the readers of stored traces, against only parsing the same bytes.

The files are made of the fixtures of the tests, repeated with ids of their own. `python -m benchmarks.traces PATH`
prints the highest memory of a process that reads a file.
"""

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from time import process_time

from agentv.traces.reading import TraceReading
from agentv.traces.session_files import write_session
from agentv.traces.spans.protobuf import spans_of_stream
from benchmarks.clock import ROOT, child_environment
from benchmarks.memory import peak
from benchmarks.table import Bar, Row
from tests.support.otlp_protobuf import encode_request
from tests.support.trace_files import ALL, ASSISTANT, FINAL, TOOL_RESULTS, TRACE_ID, USER, inspect
from tests.support.traces import FIXTURES, lines_of

_SIZE = 20_000_000
_SMALL, _LARGE = 5_000_000, 50_000_000
_DOCUMENT_SIZE = 40_000_000
_ROUNDS = 3
_SPEED = Bar("at most", 4)
_FLAT = Bar("at most", 1.3)
_DOCUMENT = Bar("at most", 6)
_IDS = re.compile(r'"((?:[a-z]|tr-)\d|session-[a-z]+)(\\*")')
"""Ids of the short sessions, also within JSON texts."""
_LONG_IDS = re.compile(r'(?<=")(?:[0-9a-f]{32}|[0-9a-f]{16})(?=")|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
"""Ids in traces of real libraries."""
_RESULTS = {"sent": 3000, "Rome": 1000}
"""Results in the short sessions, and the lengths that they get."""
_WORDS = "The parcel left the warehouse in Milan on the third of May. "
_OTLP = ("pydantic_ai_v5", "adk", "langchain_openinference", "openai_client_traceloop", "openai_client_events")


def measure() -> list[Row]:
    """Measure the speed of each format, and the memory of lines, of `.eval` files, of documents and of spans."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_speed(Path(folder)), *_memory(Path(folder))]


def _speed(folder: Path) -> Iterator[Row]:
    texts = {name: _lines(make()) for name, make in ALL.items()}
    texts["messages"] = _lines([{"id": "s1", "messages": [USER, ASSISTANT, *TOOL_RESULTS, FINAL]}])
    texts["messages, those of Inspect"] = _lines(_messages())
    texts["session"] = _sessions(folder, texts["messages"])
    texts = {name: _with_long_results(text) for name, text in texts.items()}
    texts |= {f"otlp ({name})": _lines(_fixture(name)) for name in _OTLP}
    for name, text in texts.items():
        path = folder / "speed.jsonl"
        path.write_bytes(b"".join(_repeated(text, _SIZE)))
        ours, floor = _best(partial(_read, path), partial(_parse_lines, path))
        yield Row(name=f"traces: {name} against `json.loads`", unit="seconds", ours=ours, other=floor, bar=_SPEED)
    path = folder / "speed.pb"
    lines = _repeated(_lines(_fixture("pydantic_ai_v5")), _SIZE)
    path.write_bytes(b"".join(encode_request(json.loads(line)) for part in lines for line in part.splitlines()))
    ours, floor = _best(partial(_read, path), partial(_parse_protobuf, path))
    yield Row(name="traces: otlp_protobuf against its parser", unit="seconds", ours=ours, other=floor, bar=_SPEED)


def _memory(folder: Path) -> Iterator[Row]:
    empty = _peak_of(_written(folder / "empty.jsonl", [b"{}\n"]))
    for name in ("atif", "inspect", "messages"):
        text = _lines(_messages() if name == "messages" else ALL[name]())
        few, many = (_peak_of(_written(folder / f"{size}.jsonl", _repeated(text, size))) for size in (_SMALL, _LARGE))
        yield Row(name=f"traces: memory of 50 MB of lines, {name}", unit="bytes", ours=many, other=few, bar=_FLAT)
    few, many = (_peak_of(_eval_file(folder / f"{size}.eval", size)) for size in (_SMALL, _LARGE))
    yield Row(name="traces: memory of 50 MB in an `.eval` file", unit="bytes", ours=many, other=few, bar=_FLAT)
    spans = _lines(_fixture("pydantic_ai_v5"))
    few, many = (_peak_of(_written(folder / f"{size}.jsonl", _repeated(spans, size))) for size in (_LARGE, 2 * _LARGE))
    yield Row(name="traces: memory of 100 MB of spans, which spill", unit="bytes", ours=many, other=few, bar=_FLAT)
    for name in ("otlp", "jaeger", "adk"):
        text = _lines(_fixture("adk") if name == "otlp" else ALL[name]())
        lines = [line for part in _repeated(text, _DOCUMENT_SIZE) for line in part.splitlines()]
        path = _written(folder / "document.json", [b"[", b",".join(lines), b"]"])
        used, size = _peak_of(path) - empty, path.stat().st_size
        yield Row(name=f"traces: memory of one document, {name}", unit="bytes", ours=used, other=size, bar=_DOCUMENT)


def _lines(values: list[object]) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def _fixture(name: str) -> list[object]:
    return list(lines_of(next(path for path in FIXTURES.iterdir() if path.name.partition(".")[0] == name)))


def _messages() -> list[object]:
    return [{"id": "s1", "messages": inspect()[0]["samples"][0]["messages"]}]


def _sessions(folder: Path, text: str) -> str:
    """Return sessions as `agentv convert` writes them."""
    path = _written(folder / "messages.jsonl", [text.encode()])
    return _lines([write_session(session, "compact") for session in TraceReading((str(path),)).sessions()])


def _with_long_results(text: str) -> str:
    """Return a short session with results of tools that are as long as usual, also within JSON texts."""
    for result, length in _RESULTS.items():
        words = f"{result} {_WORDS * (length // len(_WORDS))}"
        for quote in ('"', '\\"'):
            text = text.replace(f"{quote}{result}{quote}", f"{quote}{words}{quote}")
    return text


def _repeated(text: str, size: int) -> Iterator[bytes]:
    """Yield copies of a session until they have this size, each with ids of its own."""
    made = 0
    for number in count():
        copy = _IDS.sub(rf'"\g<1>-{number}\g<2>', text).replace(TRACE_ID, f"{number + 1:032x}")
        data = _LONG_IDS.sub(lambda match, end=f"{number:06x}": match[0][:-6] + end, copy).encode()  # type: ignore[misc]
        yield data
        made += len(data)
        if made >= size:
            return


def _written(path: Path, parts: Iterator[bytes] | list[bytes]) -> Path:
    with path.open("wb") as file:
        file.writelines(parts)
    return path


def _eval_file(path: Path, size: int) -> Path:
    text = json.dumps(inspect()[0]["samples"][0])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, data in enumerate(_repeated(text, size)):
            archive.writestr(f"samples/order_epoch_{number}.json", data)
    return path


def _read(path: Path) -> None:
    reading = TraceReading((str(path),))
    assert sum(1 for _ in reading.sessions()) > 1
    assert not reading.coverage.skipped_records


def _parse_lines(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def _parse_protobuf(path: Path) -> None:
    with path.open("rb") as file:
        for _ in spans_of_stream(file):
            pass


def _best(*jobs: Callable[[], None]) -> list[float]:
    """Return the processor time of each job at its best; other processes do not count."""
    best = [float("inf")] * len(jobs)
    for _ in range(_ROUNDS):
        for index, job in enumerate(jobs):
            start = process_time()
            job()
            best[index] = min(best[index], process_time() - start)
    return best


def _peak_of(path: Path) -> int:
    command = [sys.executable, "-m", "benchmarks.traces", str(path)]
    done = subprocess.run(command, check=True, cwd=ROOT, env=child_environment(), capture_output=True, text=True)
    return int(done.stdout)


if __name__ == "__main__":
    for _session in TraceReading((sys.argv[1],)).sessions():
        pass
    print(peak())
