"""The options `--dump-after STAGE --dump-dir DIR`, which write stages as numbered files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.common import FILE, bundled
from fuseflow.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from fuseflow.cli.stage_dump import StageDump


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


def _dump(dump_after: tuple[str, ...], dump_dir: Path | None) -> StageDump:
    from fuseflow.cli.stage_dump import StageDump  # `--help` does without

    return StageDump.of(dump_after, dump_dir)


dump_options = bundled(
    "dump",
    _dump,
    click.option("--dump-after", multiple=True, metavar="STAGE", callback=known_stage, help="Write a stage, or all; repeatable."),
    click.option("--dump-dir", metavar="DIR", type=FILE, help="Where --dump-after writes."),
)
"""Adds `--dump-after` and `--dump-dir`, and passes them on as `dump`, a `StageDump`."""
