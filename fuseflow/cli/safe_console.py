"""A console that shows control characters in texts instead of sending them to the terminal."""

from __future__ import annotations

import errno
import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fuseflow.cli.legend import Legend
from fuseflow.errors import visible


class SafeConsole(Console):
    """A console on which a name that holds an escape sequence does nothing. All strings that are printed pass through
    `render_str`, also strings in the cells of tables. `legend` notes the tables that are printed."""

    def __init__(self, *, legend: Legend | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.legend = legend

    def print(self, *objects: Any, **settings: Any) -> None:
        super().print(*objects, **settings)
        for printed in objects:
            if self.legend is not None and isinstance(printed, Table):
                self.legend.note(printed, self)

    def render_str(self, text: str, *args: Any, **kwargs: Any) -> Text:
        return super().render_str(visible(text), *args, **kwargs)

    def on_broken_pipe(self) -> None:
        """End the command in silence if the reader of its output has ended, as in `fuseflow ops | head -1`."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
