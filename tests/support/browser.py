"""A real Chromium for tests of the page, which notices whatever a visitor should never see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; the test is skipped if there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("the page is tested in Chromium, and none is on the PATH: install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright drives the browser: pip install 'matchmill[dev]'")
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A tab, and all that went wrong in it."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self._address = address
        self.complaints: list[str] = []
        page.add_init_script(_WATCH)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((f"{self._address}/", "data:")):
            self.complaints.append(f"left the origin: {request.url}")

    def expect_rejection(self, status: int) -> None:
        """Forget that the browser notes a rejected request, which was expected.

        The note may come after the page has shown the response.
        """
        for _ in range(100):
            if any(f"status of {status}" in text for text in self.complaints):
                break
            self.page.wait_for_timeout(100)
        (index,) = [k for k, text in enumerate(self.complaints) if f"status of {status}" in text]
        del self.complaints[index]

    def forget_lost_connections(self) -> None:
        """The browser notes each of them, and here the server was killed and started again."""
        expected = ("net::ERR_", "status of 503")
        self.complaints = [
            text for text in self.complaints if not any(word in text for word in expected)
        ]

    def check(self) -> None:
        assert self.complaints == []
        assert self.page.evaluate("window.violations") == []


@contextmanager
def tab(browser: Any, address: str, **options: Any) -> Iterator[Watched]:
    """A tab with storage of its own; afterwards nothing may have gone wrong in it."""
    context = browser.new_context(**options)
    context.set_default_timeout(60_000)
    watched = Watched(context.new_page(), address)
    try:
        watched.page.goto(address)
        yield watched
        watched.check()
    finally:
        context.close()
