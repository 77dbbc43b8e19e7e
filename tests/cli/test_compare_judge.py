"""`agentv compare A B --judge NAME`: which answer to each case a judge prefers, asked in both orders."""

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

import agentv
from agentv.model.conversation import Message
from agentv.model.results import ResultRecord
from tests.fakes.judges.pairs import pairs_program, pairs_server, shown_pairs
from tests.support.command import Command, strict_json
from tests.support.records import record, write

ASKED = Message(role="user", content="When are you open?")
ANSWERS = {
    "won": ("Nine.", "From nine to five."),
    "won too": ("Yes.", "Yes, on weekdays."),
    "lost": ("On weekdays.", "No."),
    "equal": ("Today", "Never"),
}
"""The answers of A and B."""


def conversation(case_id: str, answer: str, *before: Message, status: str = "p", **more: Any) -> ResultRecord:
    messages = (*(before or (ASKED,)), Message(role="assistant", content=answer))
    return replace(record(case_id, status, **more), candidate=answer, messages=messages)


def write_both(run: Command, answers: dict[str, tuple[str, str]]) -> None:
    for at, name in enumerate(("a.jsonl", "b.jsonl")):
        write(run.folder / name, [conversation(case_id, said[at]) for case_id, said in answers.items()])


@pytest.fixture
def project(run: Command) -> Command:
    run.write("agentv.yaml", {"targets": [pairs_program(run.folder)]})
    write_both(run, ANSWERS)
    return run


def test_the_report_has_a_section_of_its_own(project: Command) -> None:
    done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    assert (done.code, done.err) == (0, "")
    section = done.out[done.out.index("judged by") :].split("\n\n")[0]
    assert (
        section
        == """\
judged by judge: 2 wins, 1 loss, 1 tie for B (exact sign test p = 1.000)
  its two orders disagreed on 1 of 4 cases: a tie each
  asked 8 times · tokens 800 in, 80 out · cost $0.0800
  LOSS lost  agent  A is better: It says more than the other.
  WIN won  agent  B is better: It says more than the other.
  WIN won too  agent  B is better: It says more than the other."""
    )
    assert done.out.startswith("no difference seen between A and B: 0 wins, 0 losses, 4 ties"), (
        "it decides nothing else"
    )


def test_the_judge_sees_the_question_and_both_answers_in_both_orders(project: Command) -> None:
    project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    prompts = [prompt for prompt in shown_pairs(project.folder) if "From nine to five." in prompt]
    assert len(prompts) == 2
    assert sorted(prompt.index("Nine.") < prompt.index("From nine") for prompt in prompts) == [False, True]
    assert all("When are you open?" in prompt and "agent" not in prompt.partition("data.")[2] for prompt in prompts)


def test_for_programs_everything_is_in_judged(project: Command) -> None:
    found = strict_json(project("compare", "a.jsonl", "b.jsonl", "--judge", "judge", "--json").out)["judged"]
    assert {key: found[key] for key in ("judge", "cases", "wins", "losses", "ties", "inconsistent", "errors")} == {
        "judge": "judge",
        "cases": 4,
        "wins": 2,
        "losses": 1,
        "ties": 1,
        "inconsistent": 1,
        "errors": 0,
    }
    assert (found["p_value"], found["not_judged"], found["not_listed"], found["shortened"]) == (1.0, {}, 0, 0)
    assert (found["used"]["calls"], found["used"]["cost_usd"]) == (8, pytest.approx(0.08))
    assert [(each["case_id"], each["result"], each["consistent"]) for each in found["listed"]] == [
        ("lost", "loss", True),
        ("won", "win", True),
        ("won too", "win", True),
        ("equal", "tie", False),
    ]
    assert "judged" in strict_json(project("compare", "a.jsonl", "b.jsonl", "--json").out), "null without a judge"


def test_markdown_has_it_too_and_nothing_in_it_is_markup(project: Command) -> None:
    write_both(project, {"a|`b`<b>": ("No.", "A **longer** one | with bars.")})
    page = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge", "--format", "markdown").out
    section = page[page.index("## Judged by `judge`") :]
    assert "1 win, 0 losses, 0 ties for B (exact sign test p = 1.000)." in section
    assert (
        "| win | <code>a&#124;&#96;b&#96;&#60;b&#62;</code> | `B is better: It says more than the other.` |" in section
    )


def test_the_second_time_costs_nothing_and_no_cache_asks_again(project: Command) -> None:
    for options, asked in (((), 8), ((), 8), (("--no-cache",), 16)):
        done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge", *options)
        assert len(shown_pairs(project.folder)) == asked, done.err


def test_a_limit_ends_in_errors_that_say_so_and_every_call_is_counted(project: Command) -> None:
    limit = ("--max-judge-cost", "0.03", "--json")
    done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge", *limit)
    assert done.code == 3
    found = strict_json(done.out)["judged"]
    assert found["errors"] > 0
    assert "`max_judge_cost` of $0.03 is reached" in found["listed"][0]["reason"]
    assert found["used"]["calls"] == len(shown_pairs(project.folder))
    assert found["used"]["cost_usd"] == pytest.approx(0.01 * len(shown_pairs(project.folder)))


def test_a_judge_that_babbles_decides_nothing_and_the_exit_code_says_so(project: Command) -> None:
    write_both(project, {**ANSWERS, "odd": ("BABBLE", "Yes")})
    done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    assert done.code == 3
    assert "2 wins, 1 loss, 1 tie, 1 error for B" in done.out
    assert "ERROR odd  agent  the reply of the judge 'judge' could not be read, 2 times" in done.out


def test_what_was_asked_must_be_known(project: Command) -> None:
    bare = [replace(record(name), candidate=said[1]) for name, said in ANSWERS.items()]
    write(project.folder / "b.jsonl", bare)
    done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    assert (done.code, done.out) == (2, "")
    assert "nothing can be judged: the question is not in the results: run with `--include-messages`" in done.err
    assert shown_pairs(project.folder) == []


def test_what_is_not_judged_is_counted_with_the_reason(project: Command) -> None:
    other = Message(role="user", content="Where are you?")
    a = [conversation("won", "Nine."), conversation("moved", "Here."), conversation("down", "Yes."), record("bare")]
    b = [
        conversation("won", "From nine to five."),
        conversation("moved", "Over there.", other),
        replace(record("down", "e"), candidate=""),
        record("bare"),
    ]
    write(project.folder / "a.jsonl", a)
    write(project.folder / "b.jsonl", b)
    done = project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    assert done.code == 0
    assert "judged by judge: 1 win, 0 losses, 0 ties for B" in done.out
    assert "  1 case not judged: the two sides were asked different things\n" in done.out
    assert "  1 case not judged: no answer on one side\n" in done.out
    assert "  1 case not judged: the question is not in the results: run with" in done.out


def test_a_question_of_several_turns_is_shown_whole(project: Command) -> None:
    before = (
        Message(role="system", content="You are a shop."),
        Message(role="user", content="Hello!"),
        Message(role="assistant", content="Good day."),
        Message(role="user", content="Open?"),
    )
    for name, answer in (("a.jsonl", "Yes."), ("b.jsonl", "Yes, we are.")):
        write(project.folder / name, [conversation("turns", answer, *before)])
    project("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    prompt = shown_pairs(project.folder)[0]
    for role, text in (("system", "You are a shop."), ("assistant", "Good day."), ("user", "Open?")):
        assert f'of role "{role}"\n{text}\n' in prompt


def test_executions_of_the_run_store_know_what_was_asked(project: Command) -> None:
    case = {"id": "hours", "input": "When are you open?", "evaluators": [{"type": "word_count", "min": 1}]}
    agents = [{"name": "old", "provider": "mock", "reply": "Nine."}]
    agents += [{"name": "new", "provider": "mock", "reply": "From nine to five."}]
    project.write("shop.eval.yaml", {"targets": agents, "cases": [case]})
    for name in ("old", "new"):
        assert project("eval", "shop.eval.yaml", "--target", name, "-q").code == 0
    new, old = re.findall(r"^2\d{7}T\S+", project("executions", "list").out, re.MULTILINE)
    done = project("compare", old, new, "--judge", "judge")
    assert done.code == 0, done.err
    assert "judged by judge: 1 win, 0 losses, 0 ties for B" in done.out
    assert "When are you open?" in shown_pairs(project.folder)[0]


def test_of_repeated_runs_the_first_answer_counts_whatever_evaluators_made_of_it(project: Command) -> None:
    a = [conversation("hours", "Nine.", status="f"), conversation("hours", "Nine to five.", repeat=1)]
    b = [conversation("hours", "From nine to five.", status="e"), conversation("hours", "No.", repeat=1)]
    write(project.folder / "a.jsonl", a)
    write(project.folder / "b.jsonl", b)
    assert "1 win, 0 losses" in project("compare", "a.jsonl", "b.jsonl", "--judge", "judge").out


def test_a_judge_that_only_an_eval_knows_is_found(run: Command) -> None:
    write_both(run, ANSWERS)
    case = {"id": "x", "input": "x", "evaluators": [{"type": "word_count", "min": 1}]}
    agent = {"name": "agent", "provider": "mock", "reply": "x"}
    run.write("deep/shop.eval.yaml", {"targets": [agent, pairs_program(run.folder / "deep")], "cases": [case]})
    assert "2 wins, 1 loss" in run("compare", "a.jsonl", "b.jsonl", "--judge", "judge").out
    run.write("other.eval.yaml", {"targets": [agent, {**agent, "name": "judge"}], "cases": [case]})
    done = run("compare", "a.jsonl", "b.jsonl", "--judge", "judge")
    assert done.code == 2
    assert "'judge' is another target in each of deep/shop.eval.yaml, other.eval.yaml" in done.err


def test_a_model_behind_the_wire_is_asked_like_any_target(run: Command) -> None:
    write_both(run, ANSWERS)
    with pairs_server() as url:
        price = {"input": 1.0, "output": 2.0}
        judge = {"name": "gpt", "provider": "openai", "base_url": f"{url}/v1", "model": "m", "api_key": "${GPT_KEY}"}
        run.write("agentv.yaml", {"targets": [{**judge, "price": price}]})
        done = run("compare", "a.jsonl", "b.jsonl", "--judge", "gpt", "--json", env={"GPT_KEY": "sk-planted-secret"})
    assert done.code == 0, done.err
    found = strict_json(done.out)["judged"]
    assert (found["wins"], found["losses"], found["ties"], found["errors"]) == (2, 1, 1, 0)
    assert found["used"]["tokens_usage"]["input_tokens"] == 800
    assert found["used"]["cost_usd"] == pytest.approx(8 * (100 * 1.0 + 10 * 2.0) / 1e6)
    kept = b"".join(path.read_bytes() for path in run.folder.rglob("*") if path.is_file())
    assert b"sk-planted-secret" not in kept + done.out.encode()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--judge", "jugde"),
            "'jugde' is no target of agentv.yaml, nor of an eval in this folder; did you mean 'judge'?",
        ),
        (("--no-cache",), "are about a judge: name one with --judge"),
        (("--max-judge-cost", "1"), "are about a judge: name one with --judge"),
    ],
)
def test_mistakes_on_the_command_line(project: Command, options: tuple[str, ...], message: str) -> None:
    done = project("compare", "a.jsonl", "b.jsonl", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_gate_counts_a_judge_that_could_not_say(project: Command) -> None:
    write_both(project, {"odd": ("BABBLE", "Yes")})
    assert project("compare", "a.jsonl", "b.jsonl", "--judge", "judge", "--fail-on", "worse").code == 3
    assert project("compare", "a.jsonl", "b.jsonl", "--fail-on", "worse").code == 0


def test_from_python_the_same(project: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio  # noqa: PLC0415 - only here

    monkeypatch.chdir(project.folder)
    found = agentv.compare("a.jsonl", "b.jsonl", judge="judge")
    assert found.judged is not None
    assert (found.judged.wins, found.judged.losses, found.judged.p_value) == (2, 1, 1.0)

    async def notebook() -> Any:
        return agentv.compare("a.jsonl", "b.jsonl", judge="judge", max_judge_cost=0.0)

    again = asyncio.run(notebook())
    assert again.judged.errors == 0, "everything is known already"
    assert again.judged.used.cached == 8
    assert json.loads(json.dumps(again.judged.used.cost_usd)) == 0.0
