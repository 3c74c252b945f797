"""The options `--dump-after STAGE --dump-dir DIR`, which write stages as numbered files."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fuseflow.cli.common import FILE
from fuseflow.errors import UsageError, did_you_mean

Command = TypeVar("Command", bound=Callable[..., Any])


def dump_options(command: Command) -> Command:
    """Add `--dump-after` and `--dump-dir`, and pass them on as `dump`, a `StageDump`."""

    @functools.wraps(command)
    def build(*args: Any, dump_after: tuple[str, ...], dump_dir: Path | None, **kwargs: Any) -> Any:
        from fuseflow.cli.stage_dump import StageDump  # `--help` does without

        return command(*args, dump=StageDump.of(dump_after, dump_dir), **kwargs)

    directory = click.option("--dump-dir", metavar="DIR", type=FILE, help="Where --dump-after writes.")
    after = click.option(
        "--dump-after", multiple=True, metavar="STAGE", callback=known_stage, help="Write a stage, or all; repeatable."
    )
    return after(directory(build))  # type: ignore[return-value]


def known_stage(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Return the value of an option that names stages. Raises `UsageError` for an unknown stage, before any work."""
    given = [stage for stage in (value if isinstance(value, tuple) else (value,)) if stage is not None]
    if not given:
        return value
    from fuseflow.run.artifacts import SHOWN, STAGES

    stages = (*STAGES, "all") if parameter.name == "dump_after" else SHOWN
    for stage in given:
        if stage not in stages:
            raise UsageError(f"unknown stage `{stage}`", hint=did_you_mean(stage, stages))
    return value
