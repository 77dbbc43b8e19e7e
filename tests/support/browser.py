"""The system's Chromium, driven by Playwright; tests skip where one of them is missing."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

DEADLINE_S = 30.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def open_browser() -> Iterator[Any]:
    """Start the browser."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no Chromium here: none of {', '.join(NAMES)} is on the PATH")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        # As root, as in a container of CI, Chromium starts without its sandbox only.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def wait_until(page: Any, expression: str) -> None:
    """Wait until an expression is true; `wait_for_function` would need a policy that allows `eval`."""
    end = time.monotonic() + DEADLINE_S
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


class Watched:
    """A page whose scripts, requests, dialogs and errors are watched."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note)
        self.page.on("dialog", self._dismiss)

    def _note(self, message: Any) -> None:
        # The page asks for changes until it is closed, which may be after the server.
        if message.type == "error" and "ERR_CONNECTION_REFUSED" not in message.text:
            self.errors.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, address: str) -> Any:
        """Open an address, and wait for its content."""
        self.page.goto(address)
        wait_until(self.page, "document.querySelector('main')?.dataset.ready === location.hash")
        return self.page

    def outside(self, address: str) -> list[str]:
        """Return the requests that went elsewhere."""
        return [url for url in self.requests if not url.startswith(address)]
