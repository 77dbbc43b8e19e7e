"""The pages of the viewer in a real Chromium: each page and flow, keys, live changes, hostile texts, barriers."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types

from agentv.model.listing import RunLabel
from tests.fakes.judges.program import judge_program
from tests.support.browser import Watched, open_browser, wait_until
from tests.support.command import Command, command_in
from tests.support.viewer import ORDER, REFUND, in_thread, open_store, reply, store_file, support_eval, write_store
from tests.support.viewer_server import Served, serve

MISSING = "missing call: ask_approval"
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script>\u2028<svg onload=alert(3)>"
    "<a href='javascript:alert(4)'>x</a><link rel=stylesheet href='http://evil.example/x.css'>]]>--></script>{{7*7}}\x1b[31m\u202eturned\u2066"
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return a folder with a store."""
    run = command_in(tmp_path_factory.mktemp("viewer"))
    write_store(run, "--repeat", "2")
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    watched = Watched(browser)
    yield watched
    watched.context.close()
    assert watched.errors == []
    assert watched.dialogs == []


def execution_of(viewer: Served) -> str:
    return str(viewer.get("executions").data["executions"][0]["id"])


def failed_run(viewer: Served) -> str:
    return str(viewer.get("executions/last/runs?status=fail").data["runs"][0]["id"])


class TestPages:
    def test_the_list_leads_to_an_execution_and_to_a_run(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(viewer.address)
        assert "60 %" in page.inner_text(".executions-table")
        page.click(".executions-table a")
        page.wait_for_selector(".cases-table .row")
        assert page.locator(".cases-table .row").count() == 5
        page.click("button:text-is('Runs')")
        page.wait_for_selector(".runs-table .row")
        page.click(".runs-table .row a >> nth=0")
        page.wait_for_selector(".message")
        assert page.locator("h1").inner_text().startswith("refund-0")
        assert watched.outside(viewer.address) == []

    def test_a_folder_named_as_a_dot_is_shown_by_its_name(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(viewer.address)
        name = "async (command) => (await import('/static/format.js')).executionName(command)"
        assert page.evaluate(name, {"paths": [".", "b.eval.yaml"], "folder": "/home/shop"}) == "shop b.eval.yaml"
        assert page.evaluate(name, {"paths": ["."], "folder": None}) == "."

    def test_numbers_are_shown_with_their_units(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(viewer.address)
        show = (
            "async ([name, values]) => { const all = await import('/static/format.js'); return values.map(all[name]); }"
        )
        times = page.evaluate(show, ["duration", [0.4, 999.7, 1_000, 59_970, 119_900, 3_600_000, 9e9]])
        assert times == ["0.40 ms", "1.00 s", "1.00 s", "1 min 0 s", "2 min 0 s", "1 h 0 min", "2,500 h 0 min"]
        assert page.evaluate(show, ["cost", [0.00123, 0.5, 12345.6]]) == ["$0.0012", "$0.500", "$12,345.60"]

    def test_failures_are_grouped_and_lead_to_their_runs(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/executions/last")
        page.wait_for_selector(".groups")
        assert page.inner_text(".group-button").split("\n") == ["8 \N{MULTIPLICATION SIGN}", MISSING]
        page.click(".group-button")
        page.wait_for_selector(".runs-table .row")
        assert page.locator(".runs-table .row").count() == 8

    def test_filters_are_kept_in_the_address(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/executions/{execution_of(viewer)}")
        page.click(".toggle-fail")
        page.fill("#search", "refund-2")
        wait_until(page, "document.querySelector('.toolbar span').textContent.startsWith('1 case')")
        page.reload()
        page.wait_for_selector(".cases-table .row")
        assert page.locator(".cases-table .row").count() == 1
        assert page.input_value("#search") == "refund-2"

    def test_a_search_in_transcripts_lists_runs_and_counts_nothing(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/executions/last?view=cases&text=one+moment&transcripts=true")
        page.wait_for_selector(".runs-table .row")
        # 18 of 20 runs called a tool after that sentence.
        assert page.inner_text(".toolbar span") == "18 runs"
        assert page.locator(".chart, .groups").count() == 0
        assert page.is_disabled("button:text-is('Cases')")
        page.click("text=Clear")
        page.wait_for_selector(".chart")

    def test_targets_of_later_cases_have_a_column(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        check = [{"type": "contains", "value": "x"}]
        for name, cases in (("a", 210), ("b", 3)):
            data = {
                "targets": [{"name": f"target-{name}", "provider": "mock"}],
                "cases": [{"id": f"{name}{at}", "input": "x", "evaluators": check} for at in range(cases)],
            }
            run.write(f"{name}.eval.yaml", data)
        assert in_thread(run, "eval", ".").code == 0
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=cases")
            last = "document.querySelector('.cases-table .row:last-child').textContent"
            wait_until(page, f"scrollTo(0, document.body.scrollHeight), {last} === 'b2\u2013passed'")
            assert page.inner_text(".cases-table .row-head").split() == ["case", "target-a", "target-b"]

    def test_charts_have_a_text_alternative(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/executions/last")
        page.wait_for_selector(".chart svg")
        labels = [chart.get_attribute("aria-label") for chart in page.query_selector_all(".chart svg")]
        assert any(re.match(r"Cost of 20 runs: median \$0.0020, ", label) for label in labels)

    def test_a_run_shows_the_aligned_trajectory(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
        page.wait_for_selector(".message")
        rows = [row.inner_text().split("\t") for row in page.query_selector_all(".diff tbody tr")]
        assert [row[1] for row in rows] == ["get_order", "ask_approval", "refund"]
        assert rows[1][2] == "nothing"
        assert MISSING in page.inner_text(".evaluator-fail .miss")

    def test_a_cited_call_is_a_link_to_it(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
        page.wait_for_selector(".message")
        page.click(".diff a.cite >> nth=1")
        page.wait_for_selector("#call-1.cited[open] .call-body")
        assert '"amount": 900' in page.inner_text("#call-1")

    def test_a_run_can_be_copied(self, watched: Watched, viewer: Served) -> None:
        watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
        page.click("text=Copy command")
        page.wait_for_selector("text=Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "agentv eval support.eval.yaml --case refund-0 --target hasty"
        page.click("text=Raw record")
        page.wait_for_selector('pre:has-text(\'"case_id": "refund-0"\')')

    def test_repeats_stand_side_by_side_with_their_divergence(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/repeats/{execution_of(viewer)}?case_id=refund-1")
        page.wait_for_selector(".columns")
        assert "ask_approval" in page.inner_text(".notice")
        assert "ask_approval" in page.inner_text("tr.diverges")

    def test_two_executions_are_chosen_and_compared(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, "--target", "careful")
        data = support_eval()
        data["targets"][0]["reply"] = reply(ORDER, REFUND)
        write_store(run, "--target", "careful", data=data)
        with serve(store_file(run)) as viewer:
            page = watched.open(viewer.address)
            page.check(".executions-table input >> nth=0")
            page.check(".executions-table input >> nth=1")
            page.click("text=Compare the two")
            page.wait_for_selector("text=Lost by B: 4")
            assert page.locator(".evaluator").count() == 4
            assert page.locator(".trend").count() == 0
            page.click("text=swap A and B")
            page.wait_for_selector("text=Won by B: 4")


class TestConversations:
    def test_a_simulated_user_reaches_its_goal_in_turns(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        assert in_thread(run, "init", "talk", "--example", "conversation").code == 0
        assert in_thread(run, "eval", "talk", "--case", "refund-simulated").code == 0
        with serve(next(tmp_path.rglob("runs.db"))) as viewer:
            (row,) = viewer.get("executions/last/runs").data["runs"]
            page = watched.open(f"{viewer.address}#/runs/{row['id']}")
            page.wait_for_selector(".message")
            assert "conversation ended\ngoal reached" in page.inner_text(".tiles")
            assert [each.split("\n")[0][:6] for each in page.locator("h3.turn").all_inner_texts()] == [
                "Turn 1", "Turn 2", "Turn 3",
            ]  # fmt: skip
            assert "at fault" not in page.inner_text("main").lower()

    def test_a_fault_of_the_simulated_user_is_not_one_of_the_agent(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, data=self.model_eval("nonsense", asks="Which order?"))
        with serve(store_file(run)) as viewer:
            (row,) = viewer.get("executions/last/runs").data["runs"]
            page = watched.open(f"{viewer.address}#/runs/{row['id']}")
            page.wait_for_selector("text=The conversation could not be measured. At fault: the simulated user.")
            tiles = page.inner_text(".tiles")
            assert "by an error\nat fault: the simulated user" in tiles
            assert "score\n\u2013" in tiles
            assert "user model" in tiles

    def test_a_conversation_of_many_turns_keeps_its_turns(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        data = self.model_eval("", asks="Hm?")
        data["cases"][0] = {"id": "long", "turns": [{"user": f"Message {number}."} for number in range(90)],
                            "evaluators": [{"type": "contains", "value": "Hm"}]}  # fmt: skip
        write_store(run, data=data)
        with serve(store_file(run)) as viewer:
            (row,) = viewer.get("executions/last/runs").data["runs"]
            page = watched.open(f"{viewer.address}#/runs/{row['id']}")
            page.wait_for_selector(".message")
            assert page.locator("h3.turn").count() == 90
            assert "turns\n90" in page.inner_text(".tiles")

    def model_eval(self, says: str, *, asks: str) -> dict[str, Any]:
        """Return an eval whose simulated user is a model that says always the same."""
        simulate = {"user": "model", "target": "user-model", "opening": "My money!", "goal": "A refund."}
        return {
            "target": "agent",
            "targets": [
                {"name": "agent", "provider": "mock", "reply": asks},
                {"name": "user-model", "provider": "mock", "reply": says},
            ],
            "cases": [{"id": "a", "simulate": simulate, "evaluators": [{"type": "contains", "value": "x"}]}],
        }


class TestEvidence:
    def test_numbers_of_a_turn_lead_to_the_calls_of_that_turn(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        assert in_thread(run, "init", "talk", "--example", "conversation").code == 0
        assert in_thread(run, "eval", "talk", "--case", "refund-large").code == 1
        with serve(next(tmp_path.rglob("runs.db"))) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.wait_for_selector(".message")
            assert "in turn 2" in page.inner_text(".diff thead")
            assert page.inner_text(".diff a.cite").startswith("0: refund(")
            page.click(".diff a.cite")
            page.wait_for_selector("#call-2.cited[open]")
            assert "refund" in page.inner_text("#call-2 summary")

    def test_messages_of_a_conversation_are_counted_without_those_of_the_user(
        self, watched: Watched, tmp_path: Path
    ) -> None:
        def said(text: str, tokens: int) -> dict[str, Any]:
            usage = {"input_tokens": 1, "output_tokens": tokens}
            return {"output_messages": [{"role": "assistant", "content": text, "tokens_usage": usage}]}

        run = command_in(tmp_path)
        turns = [{"user": "Hi."}, {"user": "Do it."}]
        data = {
            "targets": [{"name": "t", "provider": "mock", "reply": [said("Hello.", 3), said("It is done.", 900)]}],
            "cases": [
                {"id": "a", "turns": turns, "evaluators": [{"type": "token_budget", "per": "turn", "max_output": 100}]}
            ],
        }
        write_store(run, data=data)
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.wait_for_selector(".message")
            assert page.inner_text(".miss").startswith("\N{BALLOT X} message 1 used 900")
            page.click(".miss a.cite")
            page.wait_for_selector("#message-3.cited")
            assert "It is done." in page.inner_text("#message-3")

    def test_steps_of_a_judge_are_links(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        data = support_eval()
        data["targets"].append(judge_program(run.folder))
        program = run.folder / "judge.py"
        program.write_text(program.read_text().replace("answer[:30]", '""'))
        data["cases"] = [
            {"id": "a", "input": "Refund.", "evaluators": [{"type": "trajectory_judge", "judge": "judge"}]}
        ]
        write_store(run, "--target", "careful", data=data)
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.wait_for_selector(".message")
            links = page.locator(".miss a.cite").evaluate_all("(all) => all.map((each) => each.hash.split('?')[1])")
            # A sentence, three calls, and the answer.
            assert links == ["message=1", "call=0", "call=1", "call=2", "message=2"]

    def test_large_numbers_are_shown_as_they_were_sent(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        call = {"tool": "look", "input": {"id": 12345678901234567891}, "output": {"__proto__": 1, "n": 2**63 - 1}}
        data = support_eval()
        data["targets"][0]["reply"] = reply(call)
        write_store(run, "--target", "careful", "--case", "refund-0", data=data)
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.wait_for_selector("#call-0")
            page.click("#call-0 summary")
            page.wait_for_selector("#call-0 .call-body")
            text = page.inner_text("#call-0")
            assert "look(id=12345678901234567891)" in text
            assert '"__proto__": 1' in text
            assert str(2**63 - 1) in text


class TestUnknown:
    def test_calls_that_are_not_reported_are_unknown(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}
        write_store(run, data={"targets": [{"name": "t", "provider": "mock", "reply": "x"}], "cases": [case]})
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            page.wait_for_selector(".runs-table .row")
            assert "unknown" in page.inner_text(".runs-table .row")
            page.click(".runs-table .row a")
            page.wait_for_selector(".message")
            assert "unknown\nthe reply does not report them" in page.inner_text(".tiles")
            assert "calls unknown" in page.inner_text("section[aria-label=Conversation] h2")

    def test_what_was_not_understood_stands_out(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        content = [{"type": "tool_use", "id": "1", "name": "get", "input": {}}, {"type": "hologram", "data": 1}]
        sent = run.write("reply.json", json.dumps({"messages": [{"role": "assistant", "content": content}]}))
        checks = [{"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "refund"}]}]
        target = {"name": "t", "provider": "cli", "command": ["cat", str(sent)]}
        write_store(run, data={"targets": [target], "cases": [{"id": "a", "input": "x", "evaluators": checks}]})
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            assert "1 reply was only partly understood" in page.inner_text(".notice")
            assert "hologram" in page.inner_text(".group-button")
            page.click(".runs-table .row a")
            page.wait_for_selector(".message")
            assert "Not understood, so calls may be missing" in page.inner_text(".notice")
            assert "\N{GREATER-THAN OR EQUAL TO} 1\nsome may be missing" in page.inner_text(".tiles")

    def test_rows_that_cannot_be_loaded_are_named_and_asked_for_again(self, browser: Any, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        cases = [
            {"id": f"c{at:03}", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]} for at in range(250)
        ]
        write_store(run, data={"targets": [{"name": "echo", "provider": "mock"}], "cases": cases})
        watched = Watched(browser)  # the browser logs each request that fails
        with serve(store_file(run)) as viewer:
            watched.page.route("**/runs?*cursor=*", lambda route: route.abort())
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            page.wait_for_selector(".runs-table .row")
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
            page.wait_for_selector("text=Further rows could not be loaded")
            page.unroute("**/runs?*cursor=*")
            page.click("text=Try again")
            wait_until(page, "document.querySelector('.toolbar span').textContent === '250 runs'")
        watched.context.close()


def test_charts_of_a_report_follow_its_filters(watched: Watched, viewer: Served, project: Command) -> None:
    def labels(address: str) -> list[str]:
        page = watched.open(address)
        page.wait_for_selector(".chart svg")
        return [str(chart.get_attribute("aria-label")) for chart in page.query_selector_all(".chart svg")]

    assert in_thread(project, "report", "-o", "charts.html").code == 0
    report = (project.folder / "charts.html").as_uri()
    name = execution_of(viewer)
    for query in ("view=runs", "view=runs&status=fail"):
        assert labels(f"{report}#/executions/{name}?{query}") == labels(f"{viewer.address}#/executions/{name}?{query}")
        watched.page.goto("about:blank")
    assert "of 8 runs" in labels(f"{report}#/executions/{name}?view=runs&status=fail")[0]


def test_repeats_of_a_report_are_those_of_the_viewer(watched: Watched, viewer: Served, project: Command) -> None:
    assert in_thread(project, "report", "-o", "repeats.html").code == 0
    report = (project.folder / "repeats.html").as_uri()
    path = f"#/repeats/{execution_of(viewer)}?eval_id=support&case_id=refund-1&target=hasty"
    shown = []
    for address in (viewer.address, report):
        page = watched.open(f"{address}{path}")
        page.wait_for_selector(".columns")
        shown.append(page.inner_text("main"))
        page.goto("about:blank")
    assert shown[0] == shown[1]
    page = watched.open(report)
    page.click(".case-cell >> nth=0")
    page.wait_for_selector(".columns")


READ_REPORT = """async ([blocks, id]) => {
  for (const [name, text] of blocks) {
    const block = Object.assign(document.createElement("script"), { type: "text/plain", id: name, textContent: text });
    document.body.append(block);
  }
  const { FileSource } = await import("/static/file_source.js");
  const source = new FileSource();
  const copies = ["case", "pytest", "command"].map((form) => source.copy(id, form));
  return [await source.run(id), await source.messages(id), ...await Promise.all(copies)];
}"""


def test_a_run_of_a_report_is_that_of_the_viewer(watched: Watched, tmp_path: Path) -> None:
    run = command_in(tmp_path)
    data = support_eval()
    odd = 'it\'s a "path" C:\\temp\\new, a tab\t, a line\n, \u2028, \x7f and the the the ' * 20
    data["targets"][0]["reply"]["text"] = odd
    data["cases"][0]["input"] = odd
    write_store(run, data=data)
    assert in_thread(run, "report").code == 0
    found = re.findall(r'<script type="text/plain" id="([\w-]+)">([^<]*)', (run.folder / "report.html").read_text())
    with serve(store_file(run)) as viewer:
        page = watched.open(viewer.address)
        for each in viewer.get("executions/last/runs").data["runs"]:
            one = f"runs/{each['id']}"
            head, window, *copies = page.evaluate(READ_REPORT, [found, each["id"]])
            assert head == viewer.get(one).data
            assert window == viewer.get(f"{one}/messages").data
            for form, copy in zip(("case", "pytest", "command"), copies, strict=True):
                text = viewer.get(f"{one}/copy?form={form}").data["text"]
                assert (copy == text) or (form == "pytest" and ast.dump(ast.parse(copy)) == ast.dump(ast.parse(text)))


class TestKeys:
    def test_all_keys(self, watched: Watched, viewer: Served) -> None:
        page = watched.open(f"{viewer.address}#/executions/last?view=runs")
        page.wait_for_selector(".runs-table .row")
        page.keyboard.press("f")
        wait_until(page, "document.querySelector('.toolbar span').textContent === '8 runs'")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.closest('.row').dataset.at") == "1"
        page.keyboard.press("?")
        page.wait_for_selector("dialog[open]")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        page.keyboard.press("Enter") if page.evaluate("document.activeElement.tagName") == "A" else page.click(
            ".runs-table .row a >> nth=1"
        )
        page.wait_for_selector(".message")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
        page.keyboard.press("u")
        page.wait_for_selector(".runs-table, .cases-table")


class TestLive:
    def test_an_execution_under_way_shows_up_and_moves(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, "--target", "careful")
        with serve(store_file(run)) as viewer:
            page = watched.open(viewer.address)
            page.wait_for_selector(".executions-table .row")
            data = support_eval()
            data["targets"][0]["delay_ms"] = 500
            path = run.write("slow.eval.yaml", data)
            process = run.start("eval", path.name, "--target", "careful", "--max-concurrency", "1")
            page.wait_for_selector("text=running", timeout=20_000)
            page.click(".executions-table .row a >> nth=0")
            page.wait_for_selector("progress")
            wait_until(page, "Number(document.querySelector('progress')?.value) >= 2")
            page.wait_for_selector("h1 .chip-pass", timeout=20_000)
            process.communicate(timeout=30)
            assert process.returncode == 0

    def test_a_reader_stays_at_the_same_row(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        check = [{"type": "contains", "value": "x"}]
        cases = [{"id": f"c{at:03}", "input": "x", "evaluators": check} for at in range(120)]
        name = write_store(run, data={"targets": [{"name": "echo", "provider": "mock"}], "cases": cases})
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/{name}?view=runs")
            page.wait_for_selector(".runs-table .row")
            for _ in range(60):
                page.keyboard.press("j")
            place = "[scrollY, document.activeElement.textContent]"
            before = page.evaluate(place)
            assert before[1] == "c059"
            page.evaluate("document.querySelector('.runs-table').dataset.old = '1'")
            store = open_store(run)
            store.set_label(name, next(store.runs(name)).key, RunLabel(label="fail"))
            store.close()
            page.wait_for_selector(".runs-table:not([data-old])")
            assert page.evaluate(place) == before

    def test_rows_that_were_loaded_by_scrolling_stay_and_change(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        check = [{"type": "contains", "value": "x"}]
        cases = [{"id": f"c{at:03}", "input": "x", "evaluators": check} for at in range(260)]
        name = write_store(run, data={"targets": [{"name": "echo", "provider": "mock"}], "cases": cases})
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/{name}?view=runs")
            last = "document.querySelector('.runs-table .row:last-child').textContent"
            wait_until(page, f"scrollTo(0, document.body.scrollHeight), {last}.includes('c259')")
            store = open_store(run)
            store.set_label(name, [row.key for row in store.runs(name)][259], RunLabel(label="fail"))
            store.close()
            wait_until(page, f"{last}.includes('labelled fail')")
            assert page.inner_text(".toolbar span") == "260 runs"

    def test_a_store_that_goes_away_is_named_and_the_page_stays(self, browser: Any, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run)
        file = store_file(run)
        watched = Watched(browser)  # the browser logs each answer that is an error
        with serve(file) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            page.wait_for_selector(".runs-table .row")
            file.rename(file.with_name("away.db"))
            page.wait_for_selector("main > .problem:not([hidden])")
            assert page.locator(".runs-table .row").count() == 10
            file.with_name("away.db").rename(file)
            page.wait_for_selector("main > .problem", state="hidden")
        watched.context.close()


class TestLabels:
    def test_a_label_is_set_and_feeds_calibrate(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run)
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.fill("#note", "the customer agreed")
            page.click(".label-panel .toggle-pass")
            page.wait_for_selector("text=Saved.")
            page.goto(f"{viewer.address}#/labels")
            page.wait_for_selector("text=the customer agreed")
        run.write("agentv.yaml", {"targets": [judge_program(run.folder)], "judge": "judge"})
        done = in_thread(run, "calibrate", "--criterion", "It is done", "--judge", "judge", "--json")
        assert done.lines[0]["calibration"]["n"] == 1, done.err + done.out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return a store in which every text of the agent is hostile."""
    run = command_in(tmp_path_factory.mktemp("hostile"))
    call = {"tool": HOSTILE, "input": {HOSTILE: HOSTILE}, "output": HOSTILE, "error": HOSTILE}
    case = {"id": "a", "input": HOSTILE, "tags": [HOSTILE[:40]], "metadata": {"x": HOSTILE}}
    data = {
        "targets": [{"name": "x", "provider": "mock", "reply": reply(call, text=HOSTILE, reasoning=HOSTILE)}],
        "cases": [{**case, "evaluators": [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "y"}]}]}],
    }
    write_store(run, "--out", "report.html", data=data)
    return run


class TestHostileTexts:
    def test_no_script_runs_and_nothing_is_requested(self, watched: Watched, hostile: Command) -> None:
        with serve(store_file(hostile)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            page.wait_for_selector(".runs-table .row")
            page.click(".runs-table .row a")
            page.wait_for_selector(".message")
            self.look(page)
            assert watched.outside(viewer.address) == []

    def test_neither_in_the_report(self, watched: Watched, hostile: Command) -> None:
        address = (hostile.folder / "report.html").as_uri()
        page = watched.open(address)
        page.click("button:text-is('Runs')")
        page.wait_for_selector(".runs-table .row")
        page.click(".runs-table .row a")
        page.wait_for_selector(".message")
        self.look(page)
        assert set(watched.requests) == {address}

    def look(self, page: Any) -> None:
        """Open everything on the page of a run, and look for elements that were made of texts."""
        for _ in range(3):
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            page.wait_for_timeout(50)
        text = page.inner_text("main")
        assert "<script>alert(2)</script>" in text
        assert "⟨U+001B⟩[31m⟨U+202E⟩turned⟨U+2066⟩" in text
        assert not re.search("[\x1b\u202a-\u202e\u2066-\u2069]", text)
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator("main img, main script, main link, main iframe, main a[href^='javascript']").count() == 0


class TestSize:
    def test_a_list_of_many_rows_is_virtual(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        cases = [
            {"id": f"case-{at:04}", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}
            for at in range(700)
        ]
        write_store(run, data={"targets": [{"name": "echo", "provider": "mock"}], "cases": cases})
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/executions/last?view=runs")
            page.wait_for_selector(".runs-table .row")
            assert page.locator(".runs-table .row").count() < 60
            shown = "document.querySelector('.runs-table .row:last-child').textContent"
            wait_until(page, f"scrollTo(0, document.body.scrollHeight), {shown}.includes('case-0699')")
            assert page.locator(".runs-table .row").count() < 60

    def test_long_texts_and_base64_are_cut_and_say_so(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        picture = {"tool": "see", "input": {"image": "QUJD" * 5_000}, "output": "long " * 50_000}
        data = support_eval()
        data["targets"][0]["reply"] = reply(picture, text="word " * 30_000)
        write_store(run, "--target", "careful", data=data)
        with serve(store_file(run)) as viewer:
            page = watched.open(f"{viewer.address}#/runs/{failed_run(viewer)}")
            page.wait_for_selector(".message")
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            page.wait_for_selector("text=base64, 20,000 characters")
            assert len(page.content()) < 60_000
            assert page.locator("text=of 250,000 characters are shown").count() == 1
            with page.expect_download() as download:
                page.click("text=Download record")
            assert "QUJD" * 5_000 in Path(download.value.path()).read_text(encoding="utf-8")

    def test_a_conversation_of_thousands_of_messages_opens_as_a_window(self, watched: Watched, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        messages = [
            {"role": "assistant", "content": f"step {at}", "tool_calls": [{"tool": "look"}]} for at in range(2_000)
        ]
        messages.append({"role": "assistant", "content": "the end " * 300_000})
        data = support_eval()
        data["targets"][0]["reply"] = {"output_messages": messages}
        write_store(run, "--target", "careful", "--case", "refund-0", data=data)
        with serve(store_file(run)) as viewer:
            name = viewer.get("executions/last/runs").data["runs"][0]["id"]
            page = watched.open(f"{viewer.address}#/runs/{name}")
            page.wait_for_selector("#call-0")
            assert page.locator(".message").count() == 200
            page.goto(f"{viewer.address}#/runs/{name}?call=1500")
            page.wait_for_selector("#call-1500.cited")
            assert page.locator(".message").count() <= 200
            page.click("text=Raw record")
            page.wait_for_selector("text=Cut: 10,000 characters of")


class TestBarriers:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing_serious(self, browser: Any, viewer: Served, scheme: str) -> None:
        name = execution_of(viewer)
        lists = [f"#/executions/{name}?view={view}" for view in ("runs", "cases")]
        comparisons = [f"#/repeats/{name}?case_id=refund-1", f"#/compare/{name}/{name}"]
        pages = ["#/", *lists, f"#/runs/{failed_run(viewer)}", *comparisons, "#/labels"]
        # axe itself is a script that the policy of the page would refuse.
        watched = Watched(browser, color_scheme=scheme, bypass_csp=True)
        for path in pages:
            page = watched.open(f"{viewer.address}{path}")
            found = Axe().run(page).response["violations"]
            assert [each["help"] for each in found if each["impact"] in ("serious", "critical")] == [], path
        watched.context.close()

    def test_no_page_is_wider_than_a_narrow_screen(self, browser: Any, viewer: Served) -> None:
        watched = Watched(browser)
        watched.page.set_viewport_size({"width": 400, "height": 800})
        name = execution_of(viewer)
        for path in ("#/", f"#/executions/{name}", f"#/executions/{name}?view=runs", f"#/runs/{failed_run(viewer)}",
                     f"#/repeats/{name}?case_id=refund-1", f"#/compare/{name}/{name}"):  # fmt: skip
            page = watched.open(f"{viewer.address}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
        page = watched.open(f"{viewer.address}#/executions/{name}?view=cases")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_selector(".cases-table .row")
        assert page.inner_text(".cases-table .row >> nth=0").split() == ["refund-0", "2", "of", "2", "0", "of", "2"]
        lefts = (
            page.locator(".cases-table .row >> nth=0")
            .locator("[role=cell]")
            .evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().left)")
        )
        assert lefts == sorted(lefts)
        watched.context.close()


def test_a_damaged_run_is_named_and_the_rest_is_shown(browser: Any, tmp_path: Path) -> None:
    run = command_in(tmp_path)
    write_store(run)
    store = open_store(run)
    store.db.execute("UPDATE payloads SET record = X'00' WHERE run = 1")
    store.close()
    watched = Watched(browser)
    with serve(store_file(run)) as viewer:
        name = viewer.get("executions/last/runs").data["runs"][0]["id"]
        page = watched.open(f"{viewer.address}#/runs/{name}")
        assert "damaged" in page.inner_text(".problem:not([hidden])")
        page.click("main a")
        page.wait_for_selector(".executions-table .row")
    watched.context.close()
