"""A real browser for tests of pages: the Chromium of the system, without a window, driven by Playwright.

Tests that need it are skipped where Playwright or Chromium is not installed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Any]:
    """Start a browser, or skip the test."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []  # which refuses to run as root
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield started
        started.close()


@contextmanager
def opened(started: Any, file: Path, hash: str = "", **options: Any) -> Iterator[Any]:
    """Open a file in a new page. The test fails if the page asks for anything else, or if its console or a script reports an error."""
    page = started.new_page(viewport={"width": 1500, "height": 950}, **options)
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(("file:", "blob:")) else None)
    page.goto(file.as_uri() + hash)
    yield page
    page.close()
    assert not faults


def when(locator: Any) -> Any:
    """What is expected of a page soon: `when(page.locator("tr.chosen")).to_have_count(1)` waits until it is so, or fails.

    A page follows its address in an event of its own, so what a click brings is not there at the moment when the click returns.
    """
    from playwright.sync_api import expect

    return expect(locator)
