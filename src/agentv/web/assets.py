"""Files of the client: served one by one, or joined into one script for the report."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

CLIENT = Path(__file__).parent / "client"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ENTRY = "app.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/)\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


class Asset(NamedTuple):
    """One file of the client."""

    path: Path

    def read(self) -> tuple[str, bytes]:
        """Return its content type and its content."""
        return TYPES[self.path.suffix], self.path.read_bytes()


ASSETS = {path.name: Asset(path) for path in sorted(CLIENT.iterdir()) if path.suffix in TYPES}


def page_html(write_token: str) -> str:
    """Return the page that loads the client from the server."""
    head = (
        f'<meta name="agentv-token" content="{escape(write_token)}">\n'
        '<link rel="icon" href="/static/icon.svg">\n<link rel="stylesheet" href="/static/style.css">\n'
        f'<script type="module" src="/static/{ENTRY}"></script>'
    )
    return frame_html("agentv", head)


def frame_html(title: str, head: str, body: str = "") -> str:
    """Return a page with the places that the client fills."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n{head}\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to content</a>\n<header id="bar"></header>\n'
        '<main id="main" tabindex="-1"><p class="quiet">Loading …</p></main>\n'
        '<div id="status" role="status" aria-live="polite"></div>\n'
        f"<noscript><p>This page needs JavaScript.</p></noscript>\n{body}</body>\n</html>\n"
    )


def joined_script() -> str:
    """Return all modules of the client as one script: imported modules first, without imports, exports and comments."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        done[name] = ""  # a cycle ends here
        source = (CLIENT / name).read_text(encoding="utf-8")
        for other in _IMPORT.findall(source):
            add(other)
        done[name] = _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source)))
        order.append(name)

    order: list[str] = []
    add(ENTRY)
    return "\n".join(done[name] for name in order)


def style_sheet() -> str:
    """Return the style sheet."""
    return (CLIENT / "style.css").read_text(encoding="utf-8")
