"""A progress bar for runs in a notebook."""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any

from fuseflow.errors import UsageError, visible

if TYPE_CHECKING:
    from fuseflow.run.callback_types import ProgressCallback
    from fuseflow.run.compiled import Compiled

EVERY = 0.2
"""The least seconds between two updates of the bar."""


def notebook_progress(compiled: Compiled) -> ProgressCallback:
    """Return a callback for `Compiled.run` that shows a bar below the cell: the region, its firings, how many a second, and the time left.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> program = ff.compile(text, ([[1, 0], [2, 3]], [4, 5]))
    >>> program.run(ff.notebook_progress(program)).check.passed
    True

    The firings of a region are expected from its estimate, so the time left is an estimate, too. Raises `UsageError` outside of a notebook
    or IPython.
    """
    try:
        from IPython.display import display
    except ImportError:
        raise UsageError("a bar of a notebook needs IPython", hint="commands show a bar on a terminal") from None
    expected = {region.name: region.estimate.firings for region in compiled.regions}
    return _Bar(expected, display)


class _Bar:
    """Counts the firings of regions that run one after the other, and updates the display now and then."""

    def __init__(self, expected: dict[str, float], display: Any) -> None:
        self.expected, self.fired = expected, dict[str, int]()
        self.display, self.handle = display, None
        self.start = self.shown = time.monotonic()

    def __call__(self, region: str, firings: int) -> None:
        self.fired[region] = firings
        now = time.monotonic()
        if now < self.shown + EVERY:
            return
        self.shown = now
        shown = {"text/html": self._html(region, now), "text/plain": self._text(region, now)}
        if self.handle is None:
            self.handle = self.display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)

    def _html(self, region: str, now: float) -> str:
        done, total = sum(self.fired.values()), sum(self.expected.values())
        return f'<progress value="{min(done, total):.0f}" max="{total:.0f}"></progress> {html.escape(self._text(region, now))}'

    def _text(self, region: str, now: float) -> str:
        done = sum(self.fired.values())
        rate = done / max(now - self.start, 1e-9)
        behind = sum(max(count - self.fired.get(name, 0), 0) for name, count in self.expected.items())
        return f"{visible(region)[:60]}: {done:,} firings, {rate:,.0f} a second, about {behind / max(rate, 1e-9):,.0f} s left"
