"""Whatever a configuration holds: converting it never raises, loses no test case, and gives valid evals."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.api.convert import convert_paths, output_files, write_files
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT
from agentv.api.convert.writer import plain_data
from agentv.errors import FormatError
from agentv.spec.loader import load_evals
from tests.support.examples import examples

TEXT = st.sampled_from(
    ["a", "", "{{q}}", "{{ q | upper }}", "{% if q %}x{% endif %}", "{{", "file://missing.txt", "x\ny", "^a$", "(", "1"]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
VALUE = TEXT | JUNK | st.fixed_dictionaries({"name": TEXT, "args": JUNK, "min": st.integers(-1, 3), "pattern": TEXT})
TYPE = st.sampled_from([*DETERMINISTIC, *JUDGED, *WITHOUT, "unknown", "assert-set"])
ASSERTION = st.fixed_dictionaries(
    {"type": st.builds(lambda sign, name: sign + name, st.sampled_from(["", "not-"]), TYPE), "value": VALUE},
    optional={
        "threshold": st.floats(-1, 2) | JUNK,
        "weight": st.floats(-1, 2) | JUNK,
        "metric": TEXT | JUNK,
        "transform": TEXT | JUNK,
        "config": JUNK,
        "assert": JUNK,
        "provider": TEXT | JUNK,
    },
)
TEST = st.fixed_dictionaries(
    {},
    optional={
        "vars": st.dictionaries(st.sampled_from(["q", "r"]), TEXT | JUNK, max_size=2) | JUNK,
        "assert": st.lists(ASSERTION | JUNK, max_size=3) | JUNK,
        "description": TEXT | JUNK,
        "options": JUNK | st.dictionaries(st.sampled_from(["transform", "provider", "prefix", "repeat"]), JUNK),
        "threshold": JUNK,
        "metadata": JUNK,
        "prompts": JUNK,
        "providers": JUNK,
    },
)
PROMPTFOO = st.fixed_dictionaries(
    {"prompts": st.lists(TEXT, min_size=1, max_size=2) | JUNK, "tests": st.lists(TEST, min_size=1, max_size=3)},
    optional={
        "providers": st.lists(TEXT | st.sampled_from(["echo", "openai:gpt-4.1", "http"]) | JUNK, max_size=2) | JUNK,
        "defaultTest": TEST | JUNK,
        "evaluateOptions": JUNK,
        "description": JUNK,
        "env": JUNK,
    },
)


def convert(data: Any, folder: Path, name: str, source: str) -> list[dict[str, Any]]:
    """Convert data and return the cases of the output, which is valid."""
    (folder / name).write_text(json.dumps(data), encoding="utf-8")
    [conversion] = convert_paths([str(folder / name)], source)
    write_files(output_files([conversion]), folder / "out", force=True)
    if conversion.evals:
        load_evals([str(folder / "out" / eval_.file) for eval_ in conversion.evals])
    return [case for eval_ in conversion.evals for case in plain_data(eval_.data).get("cases", ())]


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROMPTFOO)
def test_any_configuration_of_promptfoo(data: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = convert(data, Path(folder), "promptfooconfig.json", "promptfoo")
    assert len(cases) >= len(data["tests"])


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JUNK, st.sampled_from(["promptfoo", "openai-evals", "agentv-npm", "adk", "evalstudio"]))
def test_data_of_any_shape_is_converted_or_refused(data: Any, source: str) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(FormatError):
        convert(data, Path(folder), "data.json", source)
