"""The options `--energy` and `--energy-file`, which ask for the energy of a run or of an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseflow.cli.common import FILE, bundled, print_pieces

if TYPE_CHECKING:
    from rich.console import Console

    from fuseflow.energy import EventEnergies, ProgramEnergy
    from fuseflow.machine.machine import Machine


@dataclass(frozen=True, slots=True)
class EnergyRequest:
    """Whether `--energy` was passed, and the user's file of the energies of events, if there is one."""

    wanted: bool
    file: Path | None

    def energies(self, machine: Machine) -> EventEnergies | None:
        """Return the energies of events, or None if they are not wanted. Raises `EnergyError` before the work for a machine that has no
        energy, and for a file that is no such file."""
        if not self.wanted:
            return None
        from fuseflow.energy import load_event_energies, require_energy

        require_energy(machine)
        return load_event_energies(self.file)


def print_energy(out: Console, energy: ProgramEnergy) -> None:
    """Print the table of energies, and what must be known to read it."""
    from fuseflow.report.energy_tables import energy_lines, energy_table

    print_pieces(out, ["", energy_table(energy)])
    for line in energy_lines(energy):
        out.print(line, soft_wrap=True, markup=False)


def _request(energy: bool, energy_file: Path | None) -> EnergyRequest:
    return EnergyRequest(energy or energy_file is not None, energy_file)


energy_options = bundled(
    "energy",
    _request,
    click.option(
        "--energy",
        is_flag=True,
        help="Print what each region takes: operators, FIFOs, control, workspaces, DRAM, leakage.",
    ),
    click.option(
        "--energy-file",
        metavar="FILE",
        type=FILE,
        help="Take the energies of events from this YAML file; implies --energy.",
    ),
)
"""Adds the options, and passes them on as `energy`, an `EnergyRequest`."""
