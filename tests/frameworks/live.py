"""Run the real libraries, and say what changed: `python -m tests.frameworks.live [SYSTEM ...] [--latest]`.

Each system is recorded anew into a temporary folder, and its samples are held against the committed ones. Then the
pages of the frameworks and the tests `test_*_live.py` are run with the same environments.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.data.record.environments import (
    ENVIRONMENTS,
    LATEST,
    NODE_SYSTEMS,
    SYSTEMS,
    interpreter,
    node_versions,
    run_script,
)
from tests.docs.test_frameworks import SYSTEMS as PAGES
from tests.support.live import Report, describe, exit_code, look, table
from tests.support.samples import samples

HERE = Path(__file__).parent
NO_TESTS = 5
"""The exit code of pytest without tests."""


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - progress of a command


def check(system: str, *, latest: bool) -> Report:
    """Install and record one system, and compare."""
    python = interpreter(system, latest=latest)
    if not isinstance(python, Path):
        return Report(system, problem=f"does not install: {python}")
    with tempfile.TemporaryDirectory() as folder:
        failed = run_script(system, python, Path(folder))
        return look(system, Path(folder), samples(), f"its script failed: {failed}" if failed else "")


def check_node(system: str, *, latest: bool) -> Report:
    """Install a JavaScript library, which its page alone runs."""
    versions = node_versions(system, latest=latest)
    if isinstance(versions, str):
        return Report(system, problem=f"does not install: {versions}")
    return Report(system, ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_all(chosen: list[str], *, latest: bool) -> list[Report]:
    """Check one system after the other, and say at once what was found."""
    reports = []
    for number, system in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {system} ...")
        started = time.monotonic()
        report = (check_node if system in NODE_SYSTEMS else check)(system, latest=latest)
        reports.append(report)
        _, version, made, read, changed, _ = report.row
        took = f"{time.monotonic() - started:.0f} s"
        say(f"    {version}: {made} samples, {read} read, {changed} changed ({took})")
        for line in [*([report.problem] if report.problem else []), *describe(report)]:
            say(f"    {line}")
    return reports


def run_tests(chosen: list[str], *, latest: bool) -> bool:
    """Run the pages and the live tests of these systems; return whether all passed."""
    pages = [page for page, system in PAGES.items() if system in chosen]
    shown = [f"tests/docs/test_frameworks.py::test_examples_do_what_the_page_shows[{page}]" for page in pages]
    live = [str(path) for path in sorted(HERE.glob("test_*_live.py"))]
    if set(chosen) < {*SYSTEMS, *NODE_SYSTEMS}:
        live += ["-k", " or ".join(chosen)] if live else []
    env = {**os.environ, "AGENTV_FRAMEWORKS": str(LATEST if latest else ENVIRONMENTS)}
    pytest = [sys.executable, "-m", "pytest", "-q", "-rs"]
    runs = [subprocess.run([*pytest, *which], env=env, check=False) for which in (shown, live) if which]
    return all(run.returncode in (0, NO_TESTS) for run in runs)


def main() -> int:
    """Check what was asked for; 1: something is no longer read or a test failed, 3: something was not checked."""
    known = sorted([*SYSTEMS, *NODE_SYSTEMS])
    parser = argparse.ArgumentParser(prog="make frameworks", description="Run the real libraries; say what changed.")
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"one of {', '.join(known)}; all by default")
    parser.add_argument("--latest", action="store_true", help="the newest versions, not the pinned ones")
    given = parser.parse_args()
    if unknown := sorted(set(given.systems) - set(known)):
        parser.error(f"no such system: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = given.systems or known
    reports = check_all(chosen, latest=given.latest)
    passed = run_tests(chosen, latest=given.latest)
    say("\n" + table(reports))
    code = exit_code(reports)
    if not passed:
        say("A page or a live test failed, see above.")
    return code if passed else 1


if __name__ == "__main__":
    sys.exit(main())
