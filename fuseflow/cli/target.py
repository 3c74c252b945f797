"""The target of a program: the options of the machine and of the simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fuseflow.cli.common import machine_options
from fuseflow.sim.engine_names import ENGINES, Engine

if TYPE_CHECKING:
    from fuseflow.sim import Machine

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, and the simulator that models it."""

    machine: Machine
    engine: Engine = "auto"


def target_options(command: Command) -> Command:
    """Add the options of the machine and the simulator, and pass them on as `target`, a `Target`."""

    @functools.wraps(command)
    def build(*args: Any, machine: Machine, engine: Engine, **kwargs: Any) -> Any:
        return command(*args, target=Target(machine, engine), **kwargs)

    option = click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="auto",
        show_default=True,
        help="The simulator: the reference, the fast one, or by size. They give the same.",
    )
    return machine_options(option(build))  # type: ignore[return-value]
