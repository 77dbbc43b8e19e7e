"""Tests of `judge_pairs`, which `agentv compare --judge` uses."""

import sys
from pathlib import Path

import pytest
import yaml

import agentv
from agentv.api.compare.judged import AnswerPair, judge_pairs
from agentv.model.conversation import Message
from agentv.run.options import RunOptions

# Prefers the longer answer, the first one where both are as long, and babbles about an answer that says so.
JUDGE = r"""
import json, re, sys
prompt = json.load(sys.stdin)["input_messages"][-1]["content"]
open("asked", "a").write("x")
word = re.findall(r'"verdict" must be "([^"]+)"', prompt)[-1]
(_, one), (_, two) = re.findall(rf"BEGIN {word} the (first|second) answer\n(.*?)\nEND {word}", prompt, re.S)
better = "second" if len(two) > len(one) else "first"
said = json.dumps({"verdict": word, "better": better, "quote": max(one, two, key=len), "reason": "it says more"})
print(json.dumps({"text": "hm" if "BABBLE" in one + two else said, "cost_usd": 0.1}))
"""
ASKED = (Message(role="user", content="When are you open?"),)
PAIRS = [
    AnswerPair("longer", ASKED, "From 9 to 5.", "Yes."),
    AnswerPair("shorter", ASKED, "No.", "On weekdays."),
    AnswerPair("equal", ASKED, "Today", "Never"),
    AnswerPair("odd", ASKED, "BABBLE", "Yes"),
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "judge.py").write_text(JUDGE)
    target = {"name": "judge", "provider": "cli", "command": [sys.executable, "-S", "-E", "judge.py"]}
    (tmp_path / "agentv.yaml").write_text(yaml.safe_dump({"targets": [target]}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_pair_is_won_lost_tied_or_an_error(project: Path) -> None:
    found = judge_pairs(PAIRS, "judge")
    assert {each.id: each.winner for each in found.pairs} == {
        "longer": "a",
        "shorter": "b",
        "equal": "tie",
        "odd": None,
    }
    assert (found.a_wins, found.b_wins, found.ties, found.inconsistent, found.errors) == (1, 1, 1, 1, 1)
    assert found.pairs[0].reason == "A is better: it says more"
    assert "the judge said A when A came first and B when B came first" in found.pairs[2].reason
    assert "could not be read, 2 times" in (found.pairs[3].error or "")
    assert found.judges["judge"].calls == 8
    assert found.judges["judge"].cost_usd == pytest.approx(0.8)
    again = judge_pairs(PAIRS[:3], "judge")
    assert (again.judges["judge"].cached, again.judges["judge"].cost_usd) == (6, 0.0)
    assert len((project / "asked").read_text()) == 8


def test_the_limit_on_cost_holds() -> None:
    found = judge_pairs(PAIRS[:3], "judge", options=RunOptions(max_judge_cost=0.2, max_concurrency=1), keep=False)
    assert (found.a_wins, found.errors) == (1, 2)
    assert "`max_judge_cost` of $0.2 is reached" in (found.pairs[1].error or "")


def test_a_judge_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(
        agentv.SpecError, match=r"'jugde' is no target of agentv\.yaml, nor of an eval .*; did you mean 'judge'"
    ):
        judge_pairs(PAIRS, "jugde")
    with pytest.raises(agentv.SpecError, match="no judge: name a target with --judge; the targets are judge"):
        judge_pairs(PAIRS)
