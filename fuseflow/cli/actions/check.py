"""The action of the command `fuseflow check`, which `cli/check.py` declares."""

from __future__ import annotations

import click

from fuseflow.cli.common import print_notices
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.request import ProgramRequest
from fuseflow.explain.blockers import blockers_of
from fuseflow.report.blocker_lines import blocker_lines
from fuseflow.run.compiled import Compiled

SCHEMA = 1
"""The version of the JSON that this command writes."""


def check(ctx: click.Context, program: ProgramRequest, json_file: JsonFile, quiet: bool) -> None:
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
