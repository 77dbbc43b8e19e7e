"""The page for a pull request: everything that matters, on one screen or two, and nothing an agent can break."""

import re
import stat
from pathlib import Path

import pytest

from agentv.model.events import RunFinished
from agentv.model.results import OutcomeCounts
from agentv.redaction import Redactor
from agentv.reports.markdown import MAX_PAGE, MarkdownFile, code_span, fenced_block
from tests.reports.test_console_rates import repeats
from tests.support.events import HOSTILE, errored, failed, passed, tell

FENCE = re.compile(r"^(`{3,})text\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)


def page(path: Path, *runs: RunFinished, redactor: Redactor | None = None, **more: object) -> str:
    tell(MarkdownFile(path, redactor or Redactor({})), runs, **more)
    text = path.read_bytes().decode()
    assert len(text.encode()) <= MAX_PAGE
    return text


def outside(text: str) -> list[str]:
    """The lines that are Markdown, and not the text of a block."""
    return FENCE.sub("", text).splitlines()


@pytest.mark.parametrize(
    ("runs", "title"),
    [
        ([passed(0)], "# ✅ 1 run passed"),
        ([passed(0), passed(1)], "# ✅ 2 runs passed"),
        ([passed(0), failed(1)], "# ❌ 1 of 2 runs failed"),
        ([passed(0), failed(1), errored(2)], "# ⚠️ 1 of 3 runs could not be measured, 1 failed"),
        ([errored(0)], "# ⚠️ 1 of 1 run could not be measured"),
    ],
)
def test_the_title_is_the_verdict(tmp_path: Path, runs: list[RunFinished], title: str) -> None:
    assert page(tmp_path / "r.md", *runs).splitlines()[0] == title


def test_an_interrupted_execution_says_what_is_missing(tmp_path: Path) -> None:
    text = page(tmp_path / "r.md", passed(0), status="interrupted", planned=10)
    assert text.splitlines()[0] == "# ⚠️ Interrupted: 9 of 10 runs missing"
    text = page(tmp_path / "r.md", passed(0), status="error", planned=10)
    assert text.splitlines()[0] == "# ⚠️ Incomplete: 9 of 10 runs missing"


def test_rates_are_over_what_was_measured_with_the_errors_beside_them(tmp_path: Path) -> None:
    runs = [passed(0), failed(1), errored(2), errored(3, target="other")]
    text = page(tmp_path / "r.md", *runs)
    assert "1 passed, 1 failed, 2 errors: 50 % of 2 measured passed." in text
    assert "| `support` | `scripted` | 1 | 1 | 1 | 50 % of 2 (9\N{EN DASH}91 %) |" in text
    assert "| `support` | `other` | 0 | 0 | 1 | nothing measured |" in text


def test_failures_come_first_in_plan_order_with_their_reasons(tmp_path: Path) -> None:
    text = page(tmp_path / "r.md", errored(0), failed(3, "other"), passed(1), failed(2))
    assert re.findall(r"^### (.*)", text, re.MULTILINE) == ["FAIL `c2`", "FAIL `c3`", "ERROR `c0`"]
    assert "`support` · `scripted` · `support.eval.yaml:12:5` · score 0.00" in text
    assert FENCE.findall(text)[2][1] == "! transport: nobody is there"


def test_of_thousands_twenty_are_shown_and_some_named(tmp_path: Path) -> None:
    text = page(tmp_path / "r.md", *(failed(order, f"reason {order}") for order in reversed(range(5_000))))
    assert re.findall(r"^### FAIL `c(\d+)`", text, re.MULTILINE) == [str(number) for number in range(20)]
    assert "Not shown, and did not pass either: `c20`, `c21`, " in text
    assert "`c199`, 4,800 more." in text


def test_equal_failures_are_one_section_with_the_names_of_the_others(tmp_path: Path) -> None:
    text = page(tmp_path / "r.md", *(failed(order) for order in range(15)), failed(15, "other"))
    assert re.findall(r"^### (.*)", text, re.MULTILINE) == ["FAIL `c0`", "FAIL `c15`"]
    names = ", ".join(f"`c{number}`" for number in range(1, 11))
    assert f"\nThe same in {names}, 4 more.\n" in text


def test_repetitions_are_told_by_case(tmp_path: Path) -> None:
    runs = [failed(at, case_id="refund", repeat=at) for at in range(3)]
    text = page(tmp_path / "r.md", *runs, failed(3, case_id="other", repeat=1), repeats=repeats())
    assert re.findall(r"^### (.*)", text, re.MULTILINE) == ["FAIL `refund`"]
    assert "`support` · `scripted` · `support.eval.yaml:10:5` · score 0.00 · runs 1 to 3\n" in text
    assert "\nThe same in `other` (run 2).\n" in text


def test_several_targets_are_a_table_and_so_are_tags(tmp_path: Path) -> None:
    runs = [passed(0, "refund"), failed(1, case_id="refund", target="other")]
    tags = {"slow": OutcomeCounts(runs=1, passed=1, pass_rate=1.0, pass_rate_interval=(0.2, 1.0))}
    text = page(tmp_path / "r.md", *runs, tags=tags)
    assert "| case | `scripted` | `other` |\n|---|---|---|\n| `refund` | ✅ pass | ❌ FAIL |\n" in text
    assert "| `slow` | 1 | 0 | 0 | 100 % of 1 (20\N{EN DASH}100 %) |\n" in text
    assert "| case |" not in page(tmp_path / "r.md", passed(0))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_an_agent_says_stays_where_it_was_put(tmp_path: Path, text: str) -> None:
    runs = [failed(0, text, case_id=text), errored(1, text, target=text), passed(2, eval_id=text)]
    shown = page(tmp_path / "r.md", *runs)
    lines = outside(shown)
    assert len(FENCE.findall(shown)) == 2
    assert sum(line.startswith("#") for line in lines) == 4, "the title, a heading, and one for each of the two"
    rows = [line for line in lines if line.startswith("|")]
    assert [len(re.findall(r"\|", row)) for row in rows] == [*[7] * 5, *[4] * 5], "rates, then cases and targets"
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert "<script" not in "\n".join(line for line in lines if "`" not in line)


def test_pages_of_long_texts_stay_small(tmp_path: Path) -> None:
    hostile = ["`" * 1_000_000, "😀" * 1_000_000, "|" * 1_000_000, "\\`|" * 300_000]
    runs = [
        failed(n, hostile[n % 4], case_id=f"{hostile[n % 4]}{n}", eval_id=f"{n}{hostile[n % 4]}") for n in range(100)
    ]
    text = page(tmp_path / "r.md", *runs)
    assert "### FAIL" in text
    assert re.search(r"\| \d+ more \|", text)


def test_names_are_code_that_cannot_end() -> None:
    assert code_span("plain name/1") == "`plain name/1`"
    assert code_span("a|b") == "<code>a&#124;b</code>"
    assert code_span("``") == "<code>&#96;&#96;</code>"
    assert code_span(" ") == "(nothing)"
    assert code_span("a\nb") == "<code>a&#92;u000ab</code>"
    assert len(code_span("x" * 1000)) == 122


def test_fences_are_longer_than_any_inside() -> None:
    assert fenced_block("a") == "```text\na\n```"
    assert fenced_block("a\n`````\nb") == "``````text\na\n`````\nb\n``````"


def test_secrets_are_not_on_the_page(tmp_path: Path) -> None:
    secret = "p|a`s\\s<w0rd>"  # noqa: S105 - it opens nothing
    runs = [failed(0, f"got {secret}", case_id=f"id {secret}"), errored(1, secret, target=secret)]
    text = page(tmp_path / "r.md", *runs, redactor=Redactor({"KEY": secret}))
    assert "w0rd" not in text
    assert "[redacted:KEY]" in text


def test_the_file_is_private(tmp_path: Path) -> None:
    page(tmp_path / "r.md", passed(0))
    assert stat.S_IMODE((tmp_path / "r.md").stat().st_mode) == 0o600


def test_a_summary_is_added_to_what_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("# before\n")
    path.chmod(0o644)
    tell(MarkdownFile(path, Redactor({}), append=True), [passed(0)])
    assert path.read_text().startswith("# before\n# ✅ 1 run passed\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
