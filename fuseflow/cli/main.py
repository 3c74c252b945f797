"""The command line. It turns arguments into calls of the Python API, and writes results to standard output, messages to standard error."""

from __future__ import annotations

from importlib import import_module

import click

from fuseflow import __version__
from fuseflow.cli.command import ErrorBoundary, debug_option
from fuseflow.garbage_collection import collection_paused

COMMANDS = {
    "check": "check.check",
    "compile": "compile.compile_command",
    "run": "run.run",
    "simulate": "simulate.simulate",
    "cosimulate": "circuits.cosimulate_command",
    "area": "circuits.area",
    "estimate": "estimate.estimate",
    "place": "place.place",
    "schedule": "schedule.schedule",
    "sweep": "sweep.sweep",
    "sparsify": "pruning.sparsify",
    "propagate": "pruning.propagate",
    "explain": "explain.explain",
    "report": "report.report",
    "doctor": "doctor.doctor",
    "data": "lists.data",
    "machines": "lists.machines",
    "ops": "lists.ops",
    "schema": "schema.schema",
}
"""The name of each command, with its module and the function in that module."""


class AllCommands(ErrorBoundary):
    """A group that imports the module of a command when the command is called, or when all are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, function = COMMANDS[name].split(".")
        with collection_paused():
            command = getattr(import_module(f"fuseflow.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:  # click looks for the nearest name among the commands that are imported: none
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None


@click.group("fuseflow", cls=AllCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
@debug_option
def main() -> None:
    """Compile sparse PyTorch models to fused dataflow graphs, and execute them cycle by cycle."""
