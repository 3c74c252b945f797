"""The option `--json`, which writes the findings of a command as JSON, to a file or to standard output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import FILE, console, require_writable, reserved_stdout, write_out
from fuseflow.filesystem import json_text

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The destination of JSON: none if `path` is None, and the stream `stdout` of the command if it is `-`."""

    path: Path | None
    stdout: TextIO | None = None

    @property
    def to_stdout(self) -> bool:
        return str(self.path) == "-"

    def require_writable(self) -> None:
        """Raise `FileError` now rather than after the work if the file cannot be written."""
        if self.path is not None and not self.to_stdout:
            require_writable(self.path, directory=False)

    def write(self, values: Callable[[], dict[str, Any]]) -> None:
        """Write the values. They are computed only if the user wants JSON."""
        if self.path is not None:
            write_out(json_text(values()), self.path, self.stdout)

    def console(self) -> Console:
        """Return the console for text: it is standard error if the JSON takes standard output."""
        return console(stderr=self.to_stdout)


def json_option(content: str) -> Callable[[Command], Command]:
    """Return a decorator that adds `--json` and passes it on as `json_file`, a `JsonFile`. `content` describes the JSON in the help."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, json_file: Path | None, **kwargs: Any) -> Any:
            with reserved_stdout(str(json_file) == "-") as stdout:
                place = JsonFile(json_file, stdout)
                place.require_writable()
                return command(*args, json_file=place, **kwargs)

        show = f"Write {content} as JSON; - is stdout."
        option = click.option("--json", "json_file", metavar="FILE", type=FILE, help=show)
        return option(build)  # type: ignore[return-value]

    return wrap
