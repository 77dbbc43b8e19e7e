"""The report in one file: from the store, from `--out`, of damaged runs, and of very many runs."""

import json
import re
import string
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from agentv.model.listing import RunLabel
from agentv.web import report
from agentv.web.assets import ASSETS, CLIENT, joined_script
from tests.support.command import Command, command_in
from tests.support.viewer import open_store, support_eval, write_store

BLOCK = re.compile(r'<script type="text/plain" id="([\w-]+)">([^<]*)</script>')


CODES = [code for code in range(32) if code != ord("\n")]


def lines_of(block: str) -> list[str]:
    """Return the lines of a block, with its words in place of their codes."""
    head, _, text = zlib.decompress(b64decode(block)).decode().partition("\n")
    return text.translate(dict(zip(CODES, json.loads(head), strict=False))).split("\n")


def blocks(path: Path) -> dict[str, Any]:
    """Return the data of a report: its index, and the entries of each block by name, with the replies."""
    found = {name: lines_of(data) for name, data in BLOCK.findall(path.read_text(encoding="utf-8"))}
    data: dict[str, Any] = {"agentv-index": json.loads(*found.pop("agentv-index"))}
    for name, (head, *lines) in found.items():
        names = json.loads(head)
        entries, replies = lines[: len(names)], lines[len(names) :]
        data[name] = {
            each: {**json.loads(entry), "reply": reply}
            for each, entry, reply in zip(names, entries, replies, strict=True)
        }
    return data


class TestSources:
    def test_the_store_and_out_give_the_same_report(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        name = write_store(run, "--out", "out.html")
        done = run("report", name, "-o", "stored.html")
        assert done.code == 0, done.err
        out, stored = blocks(run.folder / "out.html"), blocks(run.folder / "stored.html")
        for each in (out, stored):
            for entry in each["agentv-block-0"].values():
                for field in ("target_settings", "attempt_log"):
                    del entry["head"][field]
        assert out["agentv-block-0"] == stored["agentv-block-0"]
        assert out["agentv-index"]["runs"] == stored["agentv-index"]["runs"]
        assert out["agentv-index"]["facets"] == stored["agentv-index"]["facets"]

    def test_the_last_execution_is_the_default_and_the_file_is_private(self, project: Command) -> None:
        done = project("report")
        assert done.code == 0
        path = project.folder / "report.html"
        assert path.stat().st_mode & 0o777 == 0o600
        assert len(blocks(path)["agentv-index"]["runs"]) == 20

    def test_it_needs_no_store(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, "--no-store", "--out", "out.html")
        assert len(blocks(run.folder / "out.html")["agentv-index"]["runs"]) == 10

    def test_repeats_are_aligned_in_both(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, "--repeat", "3", "--out", "out.html")
        assert run("report", "-o", "stored.html").code == 0
        found = []
        for name in ("out.html", "stored.html"):
            data = blocks(run.folder / name)
            places = data["agentv-index"]["repeats"]
            assert len(places) == 10
            found.append([data[f"agentv-block-{each['block']}"][each["name"]] for each in places])
        by_case = [sorted(each, key=lambda diff: (diff["case_id"], diff["runs"][0]["target"])) for each in found]
        assert [{len(diff["runs"]) for diff in each} for each in by_case] == [{3}, {3}]
        assert [diff["columns"] for diff in by_case[0]] == [diff["columns"] for diff in by_case[1]]

    def test_runs_beyond_the_limit_are_named_instead_of_aligned(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(report, "MAX_ALIGNED_CALLS", 0)
        run = command_in(tmp_path)
        write_store(run, "--repeat", "2", "--case", "refund-0", "--target", "careful", "--out", "out.html")
        data = blocks(run.folder / "out.html")
        (place,) = data["agentv-index"]["repeats"]
        diff = data[f"agentv-block-{place['block']}"][place["name"]]
        assert (len(diff["runs"]), len(diff["left_out"])) == (1, 1)
        assert "too large" in diff["left_out"][0]["reason"]

    def test_labels_are_in_it(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        name = write_store(run)
        store = open_store(run)
        key = next(store.runs(name)).key
        store.set_label(name, key, RunLabel(label="fail", note="rude"))
        store.close()
        assert run("report").code == 0
        found = blocks(run.folder / "report.html")
        assert [each["label"]["note"] for each in found["agentv-index"]["runs"] if each["label"]] == ["rude"]
        assert "label" not in found["agentv-block-0"][key]["head"], "the page takes it from the row"
        assert "label" in found["agentv-index"]["shared"]

    def test_secrets_are_redacted(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        data = support_eval()
        secret = "sk-proj-" + "A1b2C3d4" * 5
        data["targets"][0]["reply"]["text"] = f"The key is {secret}."
        data["cases"][0]["input"] = f"My key is {secret}."
        write_store(run, "--out", "out.html", data=data)
        assert secret not in json.dumps(blocks(run.folder / "out.html"))


class TestBlocks:
    @pytest.mark.parametrize(
        "text", ["it is as it is " * 3_000, "tab\there " * 5_000, "", "ü" * 9_000 + " the" * 9_000]
    )
    def test_the_lines_of_a_block_come_back(self, text: str) -> None:
        data = text.encode() + b"\nlast"
        packed = report.pack(report.encode_words(data))
        assert set(packed.decode()) <= set(string.ascii_letters + string.digits + "+/=")
        assert lines_of(packed.decode()) == [text, "last"]

    def test_a_word_that_is_frequent_takes_one_byte(self) -> None:
        block = report.pack(report.encode_words(b'{"note":"' + b" refund the order" * 1_000 + b'"}'))
        head = zlib.decompress(b64decode(block)).split(b"\n")[0]
        assert {" refund", " the", " order"} <= set(json.loads(head))

    def test_a_reply_is_in_the_file_once(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run, "--out", "out.html")
        entries = [entry for entry in blocks(run.folder / "out.html")["agentv-block-0"].values() if "head" in entry]
        assert entries
        for entry in entries:
            assert "window" not in entry
            assert "REPLY = json.loads(" in entry["copy"]["pytest"][0]
            assert json.loads(entry["reply"])["output_messages"]

    def test_a_long_reply_is_cut_as_in_the_viewer(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        data = support_eval()
        for target in data["targets"]:
            for reply in target["reply"] if isinstance(target["reply"], list) else [target["reply"]]:
                reply["text"] = "long text " * 2_000
        data["cases"][0]["input"] = "QUJD" * 500
        write_store(run, "--out", "out.html", data=data)
        entries = blocks(run.folder / "out.html")["agentv-block-0"].values()
        page = json.dumps([entry["window"] for entry in entries if "head" in entry])
        assert '"$cut"' in page
        assert "long text " * 1_000 not in page
        assert "QUJD" * 100 not in page


class TestTrouble:
    def test_a_damaged_run_is_listed_with_its_damage(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        write_store(run)
        store = open_store(run)
        store.db.execute("UPDATE payloads SET record = X'00' WHERE run = 1")
        store.close()
        assert run("report").code == 0
        runs = blocks(run.folder / "report.html")["agentv-index"]["runs"]
        assert [each["block"] for each in runs if "damage" in each] == [None]
        assert len(runs) == 10

    @pytest.mark.parametrize(
        ("name", "words"), [("x.pdf", "must end in .html"), ("no/such/x.html", "cannot be written")]
    )
    def test_a_file_that_cannot_be_written_is_a_usage_error(self, project: Command, name: str, words: str) -> None:
        done = project("report", "-o", name)
        assert done.code == 2
        assert words in done.err

    def test_an_unknown_execution_is_a_usage_error(self, project: Command) -> None:
        assert project("report", "nothing").code == 2

    def test_a_full_report_keeps_the_rows(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(report, "MAX_REPORT_BYTES", 0)
        monkeypatch.setattr(report, "MAX_PENDING", 0)
        monkeypatch.setattr(report, "BLOCK_BYTES", 0)
        run = command_in(tmp_path)
        write_store(run, "--out", "out.html")
        runs = blocks(run.folder / "out.html")["agentv-index"]["runs"]
        assert len(runs) == 10
        assert sum(each["block"] is None for each in runs) == 9


class TestScript:
    def test_the_modules_can_be_joined(self) -> None:
        script = joined_script()
        assert "import {" not in script
        assert not re.search(r"^export ", script, re.MULTILINE)
        assert "</script" not in script
        names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", script, re.MULTILINE)
        assert len(names) == len(set(names)), "a top-level name occurs in one module only"
        assert {f"{name}.js" for name in ("app", "dom", "run_page")} <= set(ASSETS)

    def test_no_module_makes_html_of_text(self) -> None:
        for path in CLIENT.glob("*.js"):
            source = path.read_text(encoding="utf-8")
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "http:",
            ):
                assert word not in source.replace('"http://www.w3.org/2000/svg"', ""), f"{path.name}: {word}"
