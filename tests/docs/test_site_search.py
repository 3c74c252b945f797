"""The search of the site has the page of each common task among its first three results, asked in plain words.

It needs the site, which `make docs` builds, and a browser. `.ci/run` builds the site after the other tests, and runs this file then.
"""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote_plus

import pytest
from browser import browser, when
from doc_blocks import ROOT

SITE = ROOT / "build" / "docs"
FIRST = 3
TASKS = [
    ("own edge list", "tutorials/your-graph"),
    ("own pruned network", "tutorials/your-pruned-model"),
    ("own machine another memory", "tutorials/your-machine"),
    ("own ein sddmm", "how-to/write-a-program-without-pytorch"),
    ("table in pandas", "tutorials/design-space-sweep"),
    ("sweep on two cores", "tutorials/design-space-sweep"),
    ("report of two runs", "how-to/report-a-run"),
    ("slowest node remedy", "how-to/find-the-bottleneck"),
    ("schedule under a budget", "how-to/schedule-within-a-budget"),
    ("verilog of one region", "tutorials/schedule-to-verilog"),
    ("estimate from statistics", "how-to/estimate-without-running"),
    ("run imported anew", "how-to/see-why-a-model-was-imported-again"),
]


class SilentHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not printed."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not SITE.is_dir():
        pytest.skip("there is no site: make docs")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.mark.parametrize(("words", "page"), TASKS, ids=[words for words, _ in TASKS])
def test_a_task_is_among_the_first_results(words: str, page: str, address: str, chromium: Any) -> None:
    assert (ROOT / "docs" / f"{page}.md").is_file()
    tab = chromium.new_page()
    tab.goto(f"{address}/search.html?q={quote_plus(words)}")
    when(tab.locator("#search-results")).to_contain_text("Search finished")
    results = [link.get_attribute("href") for link in tab.locator("#search-results li > a").all()]
    tab.close()
    assert any(result.startswith(f"{page}.html") for result in results[:FIRST]), results[:10]
