"""Written YAML is read back as the same data by the reader of eval files."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.api.convert.writer import Commented, Remark, plain_data, write_eval
from agentv.spec.yaml import read_yaml
from tests.support.examples import examples

ODD = [
    *("a: b", "- x", "yes", "1e3", "007", "null", "a\nb", "a\n\nb\n", " a\nb", "#x", "a #b", "{{x}}", "'", '"'),
    *("\\", "a\\b'c", "|", "? x", "%", "@a", "`", "a,b", "[a]", "a:", "a\n#b", "---\na", "1:30", "0x10", "~", "!t"),
    *("&a", "*b", "=", "<<", "a\tb\nc", "x\n  y\nz", "\n", "a\n\n", "\u2028", "é\nü", ":0", "?0", "-0", "\ue000"),
]
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30) | st.sampled_from(ODD)
SCALAR = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e15, 1e15) | TEXT
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
COMMENT = st.text(max_size=20)


def commented(value: Any) -> Any:
    return Commented(value, ("above # it",), "behind")


@settings(max_examples=examples(300))
@given(st.dictionaries(TEXT, VALUE, min_size=1, max_size=4))
def test_what_is_written_is_read_again(data: dict[str, Any]) -> None:
    assert read_yaml(write_eval(data).encode()).data == data


@settings(max_examples=examples(100))
@given(st.dictionaries(TEXT, VALUE, min_size=1, max_size=3), COMMENT, COMMENT)
def test_comments_never_change_the_data(data: dict[str, Any], above: str, behind: str) -> None:
    noted: dict[Any, Any] = {Remark(above): None}
    noted |= {key: Commented(value, (above,), behind) for key, value in data.items()}
    noted["list"] = [Remark(behind), *(Commented(value, (above,), behind) for value in data.values())]
    assert read_yaml(write_eval(noted, [above]).encode()).data == plain_data(noted)
