"""The command `fuseflow check`, which lists everything that is in the way of a model, without running it."""

from __future__ import annotations

import click

from fuseflow.cli.command import StrictCommand, debug_option
from fuseflow.cli.common import print_notices, quiet_option
from fuseflow.cli.json_file import JsonFile, json_option
from fuseflow.cli.program import ProgramRequest, program_options
from fuseflow.explain.blockers import blockers_of
from fuseflow.report.blocker_lines import blocker_lines
from fuseflow.run.compiled import Compiled

SCHEMA = 1
"""The version of the JSON that this command writes."""


@click.command(cls=StrictCommand, short_help="List all that is in the way of a model, without running it.")
@program_options()
@json_option("the list")
@quiet_option
@debug_option
@click.pass_context
def check(ctx: click.Context, program: ProgramRequest, json_file: JsonFile, quiet: bool) -> None:
    """Compile MODEL (.py, module:function, .pt2, .ein or .mlir), and list every operator that has no Einsum form.

    Each has its module, the line of the model and of the library, the shape of its value, and what to use instead. Then the program is
    fused and lowered as the schedule says, which finds what only a later stage refuses. Nothing is simulated. Exits with 1 if something
    is in the way.
    """
    json_file.require_writable()
    compiled: list[Compiled] = []
    blockers = blockers_of(lambda: compiled.append(program.compile(quiet=quiet).compiled))
    json_file.write(
        lambda: {
            "schema": SCHEMA,
            "model": str(program.path),
            "blocked": bool(blockers),
            "blockers": [blocker.to_json() for blocker in blockers],
            "notices": [notice for result in compiled for notice in result.notices],
        }
    )
    out = json_file.console()
    if not quiet:
        for line in blocker_lines(blockers):
            out.print(line, soft_wrap=True, markup=False)
        for result in compiled:
            regions, einsums = len(result.regions), len(result.program.einsums)
            out.print(f"nothing blocks `{program.path}`: {einsums} Einsums, {regions} regions", soft_wrap=True, markup=False)
            print_notices(out, result.notices)
    if blockers:
        if not quiet:
            out.print(f"{len(blockers)} in the way of `{program.path}`", soft_wrap=True, markup=False)
        ctx.exit(1)
