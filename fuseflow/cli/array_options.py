"""The option of an array of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import bundled, completed

if TYPE_CHECKING:
    from fuseflow.array.settings import ArraySettings


def _names() -> Iterable[str]:
    from fuseflow.array.settings import array_names  # completion alone needs it

    return array_names()


def _array(array_file: str | None) -> ArraySettings | None:
    if array_file is None:
        return None
    from fuseflow.array.settings import load_array  # `--help` does without

    return load_array(array_file)


def array_option(help: str, required: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds `--array`, and passes it on as `array`: `ArraySettings`, or None if it is not given."""
    option = click.option(
        "--array",
        "array_file",
        metavar="NAME",
        required=required,
        shell_complete=completed(_names),
        help=help,
    )
    return bundled("array", _array, option)
