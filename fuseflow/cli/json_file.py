"""The option `--json`: what a command found, as JSON in a file or on standard output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from fuseflow.cli.common import FILE, console, require_writable, write_out
from fuseflow.run.result import json_text

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class JsonFile:
    """Where JSON is written: nowhere if `path` is None, on standard output if it is `-`."""

    path: Path | None

    @property
    def to_stdout(self) -> bool:
        return str(self.path) == "-"

    def require_writable(self) -> None:
        """Raise `FileError` now rather than after the work if the file cannot be written."""
        if self.path is not None and not self.to_stdout:
            require_writable(self.path, directory=False)

    def write(self, values: Callable[[], dict[str, Any]]) -> None:
        """Write these values, which are made only if they are asked for."""
        if self.path is not None:
            write_out(json_text(values()), self.path)

    def console(self) -> Console:
        """Where the text goes: to standard error if the JSON takes standard output."""
        return console(stderr=self.to_stdout)


def json_option(content: str) -> Callable[[Command], Command]:
    """`--json`, passed on as `json_file`, a `JsonFile`; `what` is written."""

    def wrap(command: Command) -> Command:
        @functools.wraps(command)
        def build(*args: Any, json_file: Path | None, **kwargs: Any) -> Any:
            return command(*args, json_file=JsonFile(json_file), **kwargs)

        show = f"Write {content} as JSON; - is stdout."
        option = click.option("--json", "json_file", metavar="FILE", type=FILE, help=show)
        return option(build)  # type: ignore[return-value]

    return wrap
