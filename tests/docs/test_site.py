"""The documentation as a site: every page has its place in the navigation, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")


def linked_files(page: Path) -> list[Path]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [(page.parent / target).resolve() for target in LINK.findall(text) if "://" not in target]


def test_every_page_is_reached_from_the_index() -> None:
    indexes = [page for page in PAGES if page.name == "index.md"]
    linked = {DOCS / "index.md", *(file for page in indexes for file in linked_files(page))}
    assert [str(page.relative_to(DOCS)) for page in PAGES if page not in linked] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [str(file) for file in linked_files(page) if not file.exists()] == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_is_too_long_to_read(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) <= (150 if page.name == "README.md" else 500)
