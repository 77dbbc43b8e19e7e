"""Eval files: what is read, what is refused, and where."""

from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.registry import PROVIDERS
from agentv.spec.loader import load_evals
from tests.support.evals import CASE, CHECK, MOCK, Write, only, problems


def case_of(write: Write, lines: str) -> Any:
    (checked,) = only(write(f"{MOCK}cases:\n  - id: c\n    {CHECK}\n{lines}")).cases
    return checked.case


class TestSurface:
    def test_the_pinned_surface_is_read(self, write: Write) -> None:
        write("", "recorded.jsonl")
        found = only(
            write("""\
# yaml-language-server: $schema=...
description: Support agent must research before answering
target: support-agent
targets:
  - name: support-agent
    provider: cli
    mode: single
    command: [python, agent.py, --prompt, "{prompt}", --out, "{output_file}"]
    timeout_s: 60
    env: [SUPPORT_API_KEY]
  - name: recorded
    provider: replay
    file: recorded.jsonl
  - name: scripted
    provider: mock
    reply: {text: "ok", output_messages: [{role: assistant, content: ok}], tokens_usage: {input_tokens: 1}}
    delay_ms: 50
    fail_rate: 0.0
defaults: {repeat: 1, evaluators: [{type: tool_trajectory, maximums: {a: 1}}]}
cases:
  - id: branch-deactivation
    input: How do I deactivate a branch?
    expected_messages:
      - role: assistant
        tool_calls:
          - {tool: semanticSearch, input: {query: "branch deactivation process"}}
    evaluators:
      - type: tool_trajectory
        mode: any_order
        minimums: {semanticSearch: 3}
""")
        )
        (checked,) = found.cases
        assert [target.name for target in found.targets] == ["support-agent"]
        assert checked.case.input_messages == (agentv.Message(role="user", content="How do I deactivate a branch?"),)
        assert [check.evaluator.type for check in checked.checks] == [
            "tool_trajectory",
            "tool_trajectory",
            "expected_messages",
        ]

    @pytest.mark.parametrize("word", ["cases", "evalcases", "tests"])
    @pytest.mark.parametrize("asked", ["input", "input_messages", "inputMessages"])
    @pytest.mark.parametrize("wanted", ["expected", "expected_messages", "expectedMessages"])
    def test_aliases_are_read(self, write: Write, word: str, asked: str, wanted: str) -> None:
        call = "[{role: assistant, tool_calls: [{tool: a}]}]"
        (checked,) = only(write(f"{MOCK}{word}: [{{id: 1, {asked}: hi, {wanted}: {call}}}]")).cases
        assert checked.case.id == "1"
        assert checked.case.expected_messages == (
            agentv.Message(role="assistant", tool_calls=(agentv.ToolCall(tool="a"),)),
        )

    def test_both_words_for_one_thing_are_refused(self, write: Write) -> None:
        found = problems(write(f"{MOCK}tests: []\ncases: [{{id: a, input: x, input_messages: y, {CHECK}}}]"))
        assert found == [
            "a.eval.yaml:2:1: 'tests' is another word for 'cases'; give one of them",
            "a.eval.yaml:3:17: 'input' is another word for 'input_messages'; give one of them",
        ]

    @pytest.mark.parametrize(
        "written",
        [
            "    input: hi",
            "    input: {role: user, content: hi}",
            "    input: {content: hi}",
            "    input:\n      - {role: user, content: hi}",
            "    input_messages:\n      - role: user\n        content: hi",
        ],
    )
    def test_input_is_a_text_a_message_or_messages(self, write: Write, written: str) -> None:
        assert case_of(write, written).input_messages == (agentv.Message(role="user", content="hi"),)

    def test_tool_calls_in_flow_and_block_style_are_the_same(self, write: Write) -> None:
        flow = "    input: x\n    expected: [{role: assistant, tool_calls: [{tool: a, input: {q: 1}}]}]"
        block = "    input: x\n    expected:\n      - role: assistant\n        tool_calls:\n          - tool: a\n"
        block += "            input:\n              q: 1"
        assert case_of(write, flow) == case_of(write, block)

    def test_defaults_are_added_and_the_same_name_replaces(self, write: Write) -> None:
        write(
            "defaults: {evaluators: [{type: tool_trajectory, name: p, minimums: {p: 1}}], tags: [slow]}", "agentv.yaml"
        )
        found = only(
            write(f"""\
{MOCK}
defaults:
  repeat: 3
  threshold: 0.5
  vars: {{who: you}}
  evaluators:
    - {{type: tool_trajectory, name: limit, maximums: {{a: 1}}}}
    - {{type: tool_trajectory, minimums: {{a: 1}}}}
cases:
  - {{id: a, input: "hi {{{{ who }}}}"}}
  - {{id: b, input: hi, repeat: 2, threshold: 0.9, tags: [x],
     evaluators: [{{type: tool_trajectory, name: limit, maximums: {{a: 9}}}}]}}
""")
        )
        first, second = found.cases
        assert [check.config.get("name") for check in first.checks] == ["p", "limit", None]
        assert [check.config.get("maximums") for check in second.checks] == [None, None, {"a": 9}]
        assert (first.repeat, second.repeat) == (3, 2)
        assert (first.case.threshold, second.case.threshold) == (0.5, 0.9)
        assert (first.case.tags, second.case.tags) == (("slow",), ("slow", "x"))
        assert first.case.input_messages[0].content == "hi you"


class TestValues:
    def test_names_stand_for_values_once(self, write: Write) -> None:
        case = case_of(write, '    vars: {a: "{{ b }}", b: {c: [1]}}\n    input: "{{a}} {{ b.c }} {{ not a name }}"')
        assert case.input_messages[0].content == "{{ b }} [1] {{ not a name }}"

    def test_braces_mean_nothing_without_vars(self, write: Write) -> None:
        assert case_of(write, '    input: "{{ a }}"').input_messages[0].content == "{{ a }}"

    def test_an_unknown_name_is_refused(self, write: Write) -> None:
        (found,) = problems(
            write(f'{MOCK}cases:\n  - id: c\n    {CHECK}\n    vars: {{name: x}}\n    input: "{{{{ nme }}}}"')
        )
        assert found.startswith(
            "a.eval.yaml:6:12: input: {{ nme }} names no value of `vars`: got 'nme'; did you mean 'name'?"
        )

    def test_content_may_come_from_a_file_below_the_root(self, write: Write) -> None:
        write("from a file {{ x }}", "prompts/p.md")
        case = case_of(write, "    vars: {x: 1}\n    input:\n      - {role: user, content: file://prompts/p.md}")
        assert case.input_messages[0].content == "from a file 1"

    @pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "link", "missing", "folder"])
    def test_files_elsewhere_are_refused(self, write: Write, tmp_path: Path, name: str) -> None:
        (tmp_path.parent / "secret").write_text("x")
        write("", "folder/x")
        (tmp_path / "link").symlink_to(tmp_path.parent / "secret")
        (found,) = problems(write(f'{MOCK}cases:\n  - id: c\n    {CHECK}\n    input: "file://{name}"'))
        assert found.startswith("a.eval.yaml:5:12: input: ")
        assert "file below" in found or "outside" in found or "cannot read" in found


class TestProblems:
    def test_all_are_reported_at_once_with_place_and_guess(self, write: Write) -> None:
        text = """\
description: Support agent must research before answering
target: support-agent
targets:
  - name: support-agent
    provider: mock
    reply: hello
cases:
  - id: branch-deactivation
    input: How do I deactivate a branch?
    evaluators:
      - type: tool_trajectory
        mode: anyorder
        name: x
        minimum: {semanticSearch: 3}
"""
        choices = "exact, in_order, any_order, unordered, superset, subset"
        assert problems(write(text, "evals/support.eval.yaml")) == [
            (
                "evals/support.eval.yaml:12:15: mode: got 'anyorder'; did you mean 'any_order'? "
                f"Expected one of {choices}"
            ),
            "evals/support.eval.yaml:14:9: unknown key 'minimum'; did you mean 'minimums'?",
        ]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "1:1: expected a mapping with `cases` and a target, got an empty file"),
            ("- a", "1:1: expected a mapping with `cases` and a target, got a list"),
            (MOCK, "1:1: no cases: add `cases` or `dataset`"),
            (f"{MOCK}cases: []", "2:8: cases: the list is empty: add a case"),
            (f"{MOCK}cases: 3", "2:8: cases: expected a list, got 3"),
            (f"{MOCK}cases: [3]", "2:9: cases[0]: expected a mapping with an `id` and an `input`, got 3"),
            (f"{MOCK}cases: [{{input: x, {CHECK}}}]", "2:9: id: required"),
            (f"{MOCK}cases: [{{id: '', input: x, {CHECK}}}]", "2:14: id: expected"),
            (f"{MOCK}cases: [{{id: a, {CHECK}}}]", "2:9: case 'a' asks nothing: add `input`"),
            (f"{MOCK}cases: [{{id: a, input: x}}]", "2:9: case 'a' checks nothing"),
            (f"{MOCK}cases: [{{id: a, input: x, expected: text}}]", "2:9: case 'a' checks nothing"),
            (
                f"{MOCK}cases: [{{id: a, input: x, evaluators: [{{type: tool_trajectory, kind: metric}}]}}]",
                "checks nothing: give `expected`, ",
            ),
            (f"{MOCK}cases: [{{id: a, input: x, {CHECK}}}, {{id: a, input: x, {CHECK}}}]", "is the id of another case"),
            (CASE, "1:1: no target to test: define one in `targets`"),
            (f"{MOCK}target: u\n{CASE}", "2:9: target: expected one of t; got 'u'"),
            (f"targets: [{{name: t}}]\n{CASE}", "provider: required; one of "),
            (
                f"targets: [{{name: t, provider: mok}}]\n{CASE}",
                f"1:31: provider: got 'mok'; did you mean 'mock'? Expected one of {', '.join(sorted(PROVIDERS))}",
            ),
            (
                f"targets: [{{name: t, provider: mock, replys: 1}}]\n{CASE}",
                "1:37: unknown key 'replys'; did you mean 'reply'?",
            ),
            (
                f"targets: [{{name: t, provider: mock, reply: {{output_message: []}}}}]\n{CASE}",
                "1:45: unknown key 'output_message'; did you mean 'output_messages'?",
            ),
            (f"{MOCK}evaluators: []\n{CASE}", "belong below `defaults`"),
            (f"{MOCK}cases: [{{id: a, input: x, id: b, {CHECK}}}]", "2:27: "),
            (f"{MOCK}cases:\n\t- id: a", "3:1: "),
            (
                f"{MOCK}cases: [{{id: a, input: x, skip: no, {CHECK}}}]",
                "2:33: skip: expected true, false, or a reason in words; got 'no'",
            ),
        ],
    )
    def test_each_names_its_place(self, write: Write, text: str, said: str) -> None:
        found = problems(write(text))
        assert any(said in each for each in found), found

    def test_problems_of_several_files_come_together(self, write: Write) -> None:
        write("targts: []", "agentv.yaml")
        found = problems(write(f"{MOCK}cases: [3]", "evals/b.eval.yaml"), write("- 1", "evals/c.eval.yaml"))
        assert [each.partition(":")[0] for each in found] == ["agentv.yaml", "evals/b.eval.yaml", "evals/c.eval.yaml"]

    def test_a_path_that_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "empty").mkdir()
        found = problems("nowhere.yaml", "empty")
        assert found == [
            "'nowhere.yaml' does not exist",
            "no *.eval.yaml in 'empty'; `agentv init` makes an example",
        ]


class TestFolders:
    def test_a_folder_holds_evals_at_any_depth_but_not_in_hidden_ones(self, write: Write) -> None:
        text = f"{MOCK}{CASE}"
        for name in ("a.eval.yaml", "x/b.eval.yml", ".git/c.eval.yaml", "node_modules/d.eval.yaml", "e.yaml"):
            write(text, name)
        assert [each.id for each in load_evals(["."])] == ["a", "b"]

    def test_the_project_is_found_upwards(self, write: Write) -> None:
        write("targets: [{name: shared, provider: mock}]\ndefaults: {timeout_s: 5}", "agentv.yaml")
        found = only(write(CASE, "evals/deep/a.eval.yaml"))
        assert (found.id, found.limits.timeout_s) == ("evals/deep/a", 5)
        assert [target.name for target in found.targets] == ["shared"]

    def test_targets_of_the_file_come_before_those_of_the_project(self, write: Write) -> None:
        write("targets: [{name: t, provider: mock, reply: theirs}, {name: u, provider: mock}]", "agentv.yaml")
        path = write(f"{MOCK}{CASE}")
        assert [dict(target.settings)["reply"] for target in only(path).targets] == ["ok"]
        assert [target.name for target in only(path, ("u", "t")).targets] == ["u", "t"]

    def test_two_evals_of_one_name_are_refused(self, write: Write) -> None:
        text = f"name: same\n{MOCK}cases: [{{id: a, input: x, {CHECK}}}]"
        (found,) = problems(write(text, "a.eval.yaml"), write(text, "b.eval.yaml"))
        assert "is also that of a.eval.yaml" in found
