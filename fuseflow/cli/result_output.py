"""The options `--json`, `-o`, `--top`, `--memory` and `--resources`, which say which parts of a result are written and printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fuseflow.cli.command import Command
from fuseflow.cli.common import FILE, bundled, print_pieces, refuse_inside, require_replaceable
from fuseflow.cli.json_file import JsonFile, json_option

if TYPE_CHECKING:
    from rich.console import Console

    from fuseflow.run.result import Result


@dataclass(frozen=True, slots=True)
class ResultOutput:
    """Where a result is written, as JSON and as a `directory` of artifacts, and which tables are printed of it: the `top` nodes
    of each region, the traffic of memory, and the resources of the regions."""

    json: JsonFile
    directory: Path | None
    top: int | None
    memory: bool
    resources: bool

    def require_writable(self, **others: Path | None) -> None:
        """Raise an error now rather than after the work if something cannot be written; `others` are the files of other options,
        by name; no such file may lie in the directory."""
        if self.directory is not None:
            require_replaceable(self.directory)
            refuse_inside(self.directory, json=self.json.path, **others)

    @property
    def has_tables(self) -> bool:
        """Return whether `--top`, `--memory` or `--resources` was passed, which print tables."""
        return self.top is not None or self.memory or self.resources

    def print_tables(self, out: Console, result: Result) -> None:
        """Print the tables of `--top`, `--memory` and `--resources`, as far as these were passed."""
        from fuseflow.report.memory_tables import memory_tables
        from fuseflow.report.resource_tables import resource_table
        from fuseflow.report.tables import top_tables

        tables = [] if self.top is None else [*top_tables(result, self.top)]
        tables += memory_tables(result) if self.memory else ()
        tables += [resource_table((r.name, r.resources) for r in result.regions)] if self.resources else ()
        for table in tables:
            print_pieces(out, ["", table])


def _output(json_file: JsonFile, output: Path | None, top: int | None, memory: bool, resources: bool) -> ResultOutput:
    return ResultOutput(json_file, output, top, memory, resources)


def result_options(directory_holds: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options and passes them on as `output`, a `ResultOutput`. `directory_holds` names what `-o`
    writes."""
    return bundled(
        "output",
        _output,
        json_option("the result"),
        click.option("-o", "--output", metavar="DIR", type=FILE, help=f"Write {directory_holds} here."),
        click.option(
            "--top", metavar="N", type=click.IntRange(min=1), help="Print the N busiest and most blocked nodes of each region."
        ),
        click.option("--memory", is_flag=True, help="Print what memory did, by region and by tensor."),
        click.option("--resources", is_flag=True, help="Print what each region occupies: lanes, ports, bytes on the chip."),
    )


def print_result(out: Console, result: Result) -> None:
    """Print a row for each region, how evenly its lanes worked, and which FIFOs were deepened."""
    from fuseflow.report.tables import fifo_depth_lines, lane_lines, result_table

    print_pieces(out, [result_table(result), *lane_lines(result), *fifo_depth_lines(result)])
