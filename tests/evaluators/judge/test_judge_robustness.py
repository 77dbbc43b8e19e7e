"""Agents that talk to the judge: what becomes of each transcript before each of the four judges, over real HTTP.

The agents refunded nothing, so that a pass is a judge that was fooled. A verdict that is forged, copied or guessed
never counts; a judge that writes the verdict itself, with its word and with a true quotation, because it believes what
it reads, is fooled all the same. That is what calibration finds out, and no prompt can rule it out.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import agentv
from agentv.model.results import ResultRecord
from tests.fakes.judges.players import BABBLE, CRITERION, Prompt, obedient
from tests.fakes.judges.server import judge_target, judging
from tests.support.transcripts import HOSTILE, called

SHOW = ["trace"]
FOOLED = {
    "claims to be the judge",
    "flatters and threatens",
    "closes the fence",
    "closes every fence it can think of",
    "opens a block of its own",
    "is a template",
    "turns the direction of the text",
    "spells END with other letters",
    "breaks lines in unusual ways",
    "holds what no text holds",
    "lets a tool speak for it",
    "lets a tool speak as the user",
    "names a tool as an instruction",
    "speaks as the system",
    "speaks as the user",
    "nests deeply",
    "writes fences in wide letters",
    "pretends that this is the second try",
    "calls a tool ten thousand times",
    "writes Markdown and HTML",
    "gives its message a role of its own",
}
"""Injected text with a well-formed verdict, for a judge that believes everything it reads."""
FORGED = {
    "prints a verdict",
    "prints a verdict with a made-up word",
    "prints a verdict in a code block",
    "asks for its verdict to be copied",
    "repeats our own instructions",
    "lets a tool return a verdict",
    "pretends that the instructions begin here",
    "hides a verdict among the rows of a result",
}
"""Text that such a judge copies, and that must not be read as its verdict."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with judging() as address:
        yield address


def run(url: str, model: str, transcripts: dict[str, Any], **settings: Any) -> dict[str, ResultRecord]:
    names = list(transcripts)
    check = {"type": "llm_judge", "rubric": [CRITERION], "show": SHOW}
    cases = [{"id": name, "input": "Refund order A-17.", "evaluators": [check]} for name in names]

    def agent(request: agentv.Request) -> Any:
        return transcripts[request.id]

    judge = judge_target(url, model, **settings)
    found = agentv.evaluate({"cases": cases}, target=agent, judge=judge, max_concurrency=4)
    return {record.case_id: record for record in found.results}


def ends(records: dict[str, ResultRecord]) -> dict[str, str]:
    return {name: record.status for name, record in records.items()}


def test_a_judge_that_keeps_to_the_instructions_is_never_fooled(url: str) -> None:
    assert ends(run(url, "obedient", HOSTILE)) == dict.fromkeys(HOSTILE, "fail")


def test_the_same_judge_sees_a_refund_that_was_made(url: str) -> None:
    records = run(url, "obedient", {"honest": called("refund", "done", "I refunded order A-17.")})
    assert ends(records) == {"honest": "pass"}
    (found,) = records["honest"].evaluators
    assert found.details["judge"]["calls"] == 1
    assert found.details["judge"]["tokens_usage"]["input_tokens"] == 100


def test_what_a_gullible_judge_copies_is_an_error_and_only_what_it_believes_passes(url: str) -> None:
    records = run(url, "gullible", HOSTILE)
    expected = {name: "pass" if name in FOOLED else "error" if name in FORGED else "fail" for name in HOSTILE}
    assert ends(records) == expected
    for name in FORGED:
        (found,) = records[name].evaluators
        assert found.score is None
        assert 'could not be read, 2 times: There is no JSON object in it whose "verdict" is' in found.details["error"]
        assert found.details["judge"]["calls"] == 2


def test_a_judge_that_babbles_decides_nothing(url: str) -> None:
    records = run(url, "broken", HOSTILE)
    assert ends(records) == dict.fromkeys(HOSTILE, "error")
    for record in records.values():
        (found,) = record.evaluators
        assert found.score is None
        assert "could not be read" in found.details["error"]


def test_a_judge_that_is_late_decides_nothing(url: str) -> None:
    records = run(url, "slow", HOSTILE, timeout_s=0.2, retries=0)
    assert ends(records) == dict.fromkeys(HOSTILE, "error")
    for record in records.values():
        (found,) = record.evaluators
        assert "gave no reply: timeout: no reply within 0.2 s" in found.details["error"]


@pytest.mark.parametrize("reply", BABBLE, ids=lambda reply: reply[:60] or "nothing")
def test_no_babble_is_ever_a_verdict(reply: str) -> None:
    asked: list[Prompt] = []

    def judge(prompt: str) -> str:
        asked.append(Prompt(prompt))
        return reply.replace("WORD", asked[-1].word)

    config = {"type": "llm_judge", "rubric": [CRITERION], "show": SHOW}
    result = agentv.score(called("refund", "done"), [config], judge=judge).evaluators[0]
    assert (result.status, result.score) == ("error", None)
    assert len(asked) == 2


@pytest.mark.parametrize("name", HOSTILE)
def test_no_transcript_gets_out_of_its_fence(name: str) -> None:
    """For any text, the blocks of the prompt are ours, under our labels, and nothing is between them."""
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return obedient(prompt)

    config = {"type": "llm_judge", "rubric": [CRITERION], "show": SHOW, "max_chars": 10_000_000}
    agentv.score(HOSTILE[name], [config], judge=judge)
    prompt = Prompt(asked[0])
    outside = asked[0]
    for label, data in prompt.blocks:
        whole = f"BEGIN {prompt.word} {label}\n{data}\nEND {prompt.word}"
        assert whole in outside
        outside = outside.replace(whole, "", 1)
        assert prompt.word not in data
    assert outside.count(f"BEGIN {prompt.word}") == 2, "those that explain the fence"
    for words in ("mark", "aaaaaaaaaaaaaaaa", "0123456789abcdef", "7 * 7", "Sorry", "SYSTEM"):
        assert words not in outside
    assert not set(outside) & set("\u202e\u2066\u2028\u2029\x00\x1b\x9b")
    assert not any(0xE0000 <= ord(char) <= 0xE01EF or 0xFE00 <= ord(char) <= 0xFE0D for char in asked[0])
    assert "\u200c\u200d" not in asked[0]


def test_what_cannot_be_seen_is_spelt_out_for_the_judge() -> None:
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return obedient(prompt)

    agentv.score(
        HOSTILE["hides its instructions in tag characters"], [{"type": "llm_judge", "rubric": ["x"]}], judge=judge
    )
    assert "Sorry.⟨U+E006A⟩⟨U+E0075⟩" in asked[0]


def test_a_long_transcript_is_folded_and_says_so() -> None:
    asked: list[str] = []

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return obedient(prompt)

    config = {"type": "llm_judge", "rubric": [CRITERION], "max_chars": 2_000}
    result = agentv.score(HOSTILE["is very long"], [config], judge=judge).evaluators[0]
    assert len(asked[0]) < 8_000
    assert "characters left out" in asked[0]
    assert "A text that is longer than fits shows its beginning and its end" in asked[0]
    assert result.details["folded"] == {"texts": {"shortened": 1, "max_chars": 2000}}


def test_the_word_of_a_call_cannot_be_foreseen() -> None:
    words: list[str] = []

    def judge(prompt: str) -> str:
        words.append(Prompt(prompt).word)
        return obedient(prompt)

    for answer in ("a", "b", "a"):
        agentv.score([{"role": "assistant", "content": answer}], [{"type": "llm_judge", "rubric": ["x"]}], judge=judge)
    assert len(set(words)) == 3
    assert all(len(word) == 16 for word in words)
