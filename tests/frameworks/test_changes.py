"""Does `make frameworks` notice what a new version of a library changed? Here with small data, and no library."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.data.record.environments import requirements
from tests.support.live import Finding, Report, compare, describe, exit_code, look, table
from tests.support.samples import Sample
from tests.support.shapes import differences

CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
MESSAGES = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "18 C"},
    {"role": "assistant", "content": "It is 18 C."},
]
EXPECT = {
    "calls": [{"tool": "get_weather", "input": {"city": "Paris"}, "output": "18 C"}],
    "text": "It is 18 C.",
    "usage": {"input_tokens": 3},
}
REPLY = {"messages": MESSAGES, "usage": {"input_tokens": 3, "output_tokens": 2}}


def sample(reply: Any, name: str = "lib.call", expect: dict[str, Any] = EXPECT) -> Sample:
    return Sample(name, "json", reply, expect, "real library", "lib 1.0")


def renamed(old: str, new: str) -> Any:
    """Write the reply with other words, as a new version of a library might."""
    return json.loads(json.dumps(REPLY).replace(f'"{old}"', f'"{new}"'))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 2.5}, []),
        ({"a": 1}, {"a": 1, "b": {"c": 1}}, ["+ b: object"]),
        ({"a": {"b": [1]}}, {}, ["- a: object"]),
        ({"a": 1}, {"a": "1"}, ["~ a: number -> text"]),
        ({"a": [1]}, {"a": [1, None]}, ["~ a[]: number -> null/number"]),
        ([{"type": "text", "x": 1}], [{"type": "text", "x": 1}] * 2, []),
        ([{"type": "text"}], [{"type": "text"}, {"type": "tool", "x": 1}], ["+ [tool]: object"]),
        ([{"role": "user", "x": 1}], [{"role": "user", "y": 1}], ["+ [user].y: number", "- [user].x: number"]),
    ],
)
def test_a_difference_of_shape_is_a_key_or_a_type(before: Any, after: Any, found: list[str]) -> None:
    assert differences(before, after) == found


def test_the_same_again_is_nothing_new() -> None:
    assert compare([sample(REPLY)], [sample(REPLY)]) == (Finding("lib.call"),)


def test_what_is_read_in_spite_of_a_change_is_not_lost() -> None:
    (found,) = compare([sample({**REPLY, "trace_url": "x"})], [sample(REPLY)])
    assert found == Finding("lib.call", changes=("+ trace_url: text",))


@pytest.mark.parametrize(
    ("reply", "lost"),
    [
        (renamed("tool_calls", "invocations"), ("calls", "results")),
        (renamed("18 C", "19 C"), ("results",)),
        (renamed("input_tokens", "tokens_in"), ("usage",)),
        (renamed("It is 18 C.", "It is cold."), ("text",)),
    ],
)
def test_what_is_no_longer_read_is_named_fact_by_fact(reply: Any, lost: tuple[str, ...]) -> None:
    (found,) = compare([sample(reply)], [sample(REPLY)])
    assert found.lost == lost
    assert exit_code([Report("lib", findings=(found,))]) == 1


def test_what_was_not_read_before_is_no_loss() -> None:
    changed = sample(renamed("input_tokens", "tokens_in"))
    (found,) = compare([changed], [changed])
    assert (found.lost, found.unread) == ((), ("usage",))
    assert exit_code([Report("lib", findings=(found,))]) == 0


def test_a_new_sample_must_be_read_and_one_that_is_gone_is_named() -> None:
    new, gone = compare([sample(renamed("tool_calls", "invocations"), "lib.new")], [sample(REPLY)])
    assert (new.name, new.is_new, new.lost) == ("lib.new", True, ("calls", "results"))
    assert gone == Finding("lib.call", is_gone=True)


def test_what_could_not_be_checked_is_neither_fine_nor_lost() -> None:
    assert exit_code([Report("a"), Report("b", problem="does not install: no such package")]) == 3
    assert exit_code([Report("a")]) == 0


def write(folder: Path, name: str, reply: Any) -> None:
    head = {"system": "lib", "library": "lib", "version": "2.0", "made_by": "real library"}
    (folder / f"{name}.json").write_text(json.dumps({**head, "reply": reply, "expect": EXPECT}), encoding="utf-8")


def test_the_samples_of_a_folder_are_held_against_those_of_their_system(tmp_path: Path) -> None:
    write(tmp_path, "lib.call", renamed("tool_calls", "invocations"))
    write(tmp_path, "lib.same", {**REPLY, "a": 1})
    committed = [
        sample(REPLY),
        sample(REPLY, "lib.same"),
        sample(REPLY, "lib.gone"),
        sample(REPLY, "other.call"),
        sample(REPLY, "lib.by-hand")._replace(is_recorded=False),
    ]
    report = look("lib", tmp_path, committed)
    assert report.row == ["lib", "lib 2.0", "2", "1", "3", ""]
    assert describe(report) == [
        "lib.call: no longer read: calls, results",
        "lib.gone: was not recorded",
        "+ messages[assistant].invocations: list (lib.call)",
        "- messages[assistant].tool_calls: list (lib.call)",
        "+ a: number (lib.same)",
    ]
    # A script that broke off says nothing about what it did not come to.
    broken = look("lib", tmp_path, committed, "the script failed")
    assert [each.name for each in broken.findings] == ["lib.call", "lib.same"]
    assert table([report]).splitlines() == [
        "system  version  samples  read  changed",
        "lib     lib 2.0  2        1     3",
    ]


def test_the_newest_versions_are_asked_for_without_the_pins() -> None:
    text = "one[extra]==1.2 # latest: <2\n# a comment\ntwo==3\n"
    assert requirements(text) == ["one[extra]==1.2", "two==3"]
    assert requirements(text, latest=True) == ["one[extra]<2", "two"]
