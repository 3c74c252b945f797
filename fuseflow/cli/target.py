"""The target of a program: the options of the machine and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fuseflow.cli.common import bundled, machine_options
from fuseflow.sim.engine_names import ENGINES, Engine

if TYPE_CHECKING:
    from fuseflow.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, and the simulator that models it."""

    machine: Machine
    engine: Engine = "auto"


target_options = bundled(
    "target",
    Target,
    machine_options(),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="auto",
        show_default=True,
        help="The simulator: the reference, the fast one, or by size. They give the same.",
    ),
)
"""Adds the options of the machine and the simulator, and passes them on as `target`, a `Target`."""
