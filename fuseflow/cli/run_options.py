"""The options of runs: the machine and the simulator, what is written and printed of a result, its energy, a trace, and dumped stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fuseflow.cli.command import Command, options_of
from fuseflow.cli.common import (
    FILE,
    JsonFile,
    bundled,
    json_option,
    machine_options,
    output_option,
    print_lines,
    print_pieces,
    refuse_inside,
    require_replaceable,
    resources_option,
)
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.sim.engine_names import ENGINES, Engine
from fuseflow.sim.processors import PROCESSORS

if TYPE_CHECKING:
    from rich.console import Console

    from fuseflow.array.settings import ArraySettings
    from fuseflow.cli.stage_dump import StageDump
    from fuseflow.cli.trace_request import TraceRequest
    from fuseflow.energy import EventEnergies, ProgramEnergy
    from fuseflow.machine.machine import Machine
    from fuseflow.run.result import Result

simulation_option = options_of("Simulation")
_energy_option = options_of("Energy")
_trace_option = options_of("Traces and stages")


@dataclass(frozen=True, slots=True)
class Target:
    """A machine, the simulator that models it, and the array that the default cut is to fit."""

    machine: Machine
    engine: Engine = "auto"
    array: ArraySettings | None = None


def _target(machine: Machine, engine: Engine, threads: int | None) -> Target:
    if threads is not None and engine == "reference":
        raise UsageError("`--threads` beside `--engine reference`, which runs in one thread", hint="leave one of them out")
    PROCESSORS.limit = threads
    return Target(machine, engine)


target_options = bundled(
    "target",
    _target,
    machine_options(),
    simulation_option(
        "--engine",
        type=click.Choice(ENGINES),
        default="auto",
        show_default=True,
        help="The simulator: the reference, the fast one, or by size. They give the same.",
    ),
    simulation_option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        help="Simulate a long region in up to N threads.  [default: the idle cores]",
    ),
)
"""Adds the options of the machine and the simulator, and passes them on as `target`, a `Target`."""


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """Where a result is written, as JSON and as a `directory` of artifacts, and which tables are printed of it: the `top` nodes
    of each region, the traffic of memory, and the resources of the regions."""

    json_file: JsonFile
    directory: Path | None
    top: int | None
    memory: bool
    resources: bool

    def require_writable(self, **others: Path | None) -> None:
        """Raise an error now rather than after the work if something cannot be written; `others` are the files of other options,
        by name; no such file may lie in the directory."""
        if self.directory is not None:
            require_replaceable(self.directory)
            refuse_inside(self.directory, json=self.json_file.path, **others)

    @property
    def has_tables(self) -> bool:
        """Return whether `--top`, `--memory` or `--resources` was passed, which print tables."""
        return self.top is not None or self.memory or self.resources

    def print_tables(self, out: Console, result: Result) -> None:
        """Print the tables of `--top`, `--memory` and `--resources`, as far as these were passed."""
        if not self.has_tables:
            return
        from fuseflow.report.memory_tables import memory_tables
        from fuseflow.report.resource_tables import resource_table
        from fuseflow.report.tables import top_tables

        tables = [] if self.top is None else [*top_tables(result, self.top)]
        tables += memory_tables(result) if self.memory else ()
        tables += [resource_table((r.name, r.resources) for r in result.regions)] if self.resources else ()
        for table in tables:
            print_pieces(out, ["", table])


def result_options(directory_holds: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options and passes them on as `output`, a `ResultOutput`. `directory_holds` names what `-o`
    writes."""
    return bundled(
        "output",
        ResultOutput,
        json_option("the result"),
        output_option("-o", "--output", "directory", metavar="DIR", type=FILE, help=f"Write {directory_holds} here."),
        output_option(
            "--top", metavar="N", type=click.IntRange(min=1), help="Print the N busiest and most blocked nodes of each region."
        ),
        output_option("--memory", is_flag=True, help="Print what memory did, by region and by tensor."),
        resources_option,
    )


def print_result(out: Console, result: Result) -> None:
    """Print a row for each region, how evenly its lanes worked, and which FIFOs were deepened."""
    from fuseflow.report.tables import fifo_depth_lines, lane_lines, result_table

    print_pieces(out, [result_table(result), *lane_lines(result), *fifo_depth_lines(result)])


@dataclass(frozen=True, slots=True)
class EnergyRequest:
    """Whether `--energy` was passed, and the user's file of the energies of events, if there is one."""

    energy: bool
    energy_file: Path | None

    @property
    def wanted(self) -> bool:
        return self.energy or self.energy_file is not None

    def energies(self, machine: Machine) -> EventEnergies | None:
        """Return the energies of events, or None if they are not wanted. Raises `EnergyError` before the work for a machine that has no
        energy or a memory without energies, and for a file that is no such file."""
        if not self.wanted:
            return None
        from fuseflow.energy import dram_name, load_event_energies, require_energy

        require_energy(machine)
        energies = load_event_energies(self.energy_file)
        energies.parts(dram_name(machine))
        return energies


energy_options = bundled(
    "energy",
    EnergyRequest,
    _energy_option(
        "--energy", is_flag=True, help="Print what each region takes: operators, FIFOs, control, workspaces, DRAM, leakage."
    ),
    _energy_option(
        "--energy-file", metavar="FILE", type=FILE, help="Take the energies of events from this YAML file; implies --energy."
    ),
)
"""Adds the options, and passes them on as `energy`, an `EnergyRequest`."""


def print_energy(out: Console, energy: ProgramEnergy) -> None:
    """Print the table of energies, and what must be known to read it."""
    from fuseflow.report.resource_tables import energy_lines, energy_table

    print_pieces(out, ["", energy_table(energy)])
    print_lines(out, energy_lines(energy))


def _trace(trace: Path | None, trace_window: str | None) -> TraceRequest | None:
    if trace is None and trace_window is None:
        return None
    from fuseflow.cli.trace_request import trace_request  # takes long to load, and a run without a trace does without

    return trace_request(trace, trace_window)


trace_options = bundled(
    "trace",
    _trace,
    _trace_option("--trace", metavar="FILE", type=FILE, help="Write a trace that Perfetto opens: t.json.gz, or t.json."),
    _trace_option("--trace-window", metavar="START:END", help="Trace these cycles alone, firing by firing if they are few."),
)
"""Adds the options of a trace, and passes them on as `trace`, a `TraceRequest` or None."""


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
    _trace_option(
        "--dump-after", multiple=True, metavar="STAGE", callback=known_stage, help="Write a stage, or all; repeatable."
    ),
    _trace_option("--dump-dir", metavar="DIR", type=FILE, help="Where --dump-after writes."),
)
"""Adds `--dump-after` and `--dump-dir`, and passes them on as `dump`, a `StageDump`."""
