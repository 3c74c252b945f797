"""`fuseflow explain`: why the compiler did what it did."""

from __future__ import annotations

from pathlib import Path

import click

import fuseflow as ff
from fuseflow.cli.common import StrictCommand, debug_option, model_options, schedule_options, write_out
from fuseflow.cli.explain_fusion import fusion
from fuseflow.fusion.text import show_order
from fuseflow.schedule import Schedule


@click.group()
@debug_option
def explain() -> None:
    """Say why a program was compiled as it was."""


@explain.command("order", cls=StrictCommand)
@model_options
@schedule_options
@debug_option
def order(model: Path, data: str | None, data_dir: Path | None, tensors: Path | None, seed: int, schedule: Schedule) -> None:
    """Explain the loop order of every region of MODEL: what it must respect, and why it was chosen."""
    compiled = ff.compile(model, data=data, data_dir=data_dir, tensors=tensors, schedule=schedule, seed=seed)
    write_out("\n".join(show_order(region.fused) for region in compiled.regions), None)


explain.add_command(fusion)
