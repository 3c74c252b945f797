"""The action of the command `fuseflow check`, which `cli/check.py` declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from fuseflow.cli.common import JsonFile, print_lines, print_notices
from fuseflow.cli.request import ProgramRequest
from fuseflow.explain.compile_blockers import Blocker, blockers_of
from fuseflow.report.tables import shape_text
from fuseflow.run.compiled import Compiled


def check(ctx: click.Context, program: ProgramRequest, json_file: JsonFile, quiet: bool) -> None:
    compiled: list[Compiled] = []
    blockers = blockers_of(lambda: compiled.append(program.compile(quiet=quiet).compiled))
    json_file.write(
        lambda: {
            "schema": 1,
            "model": str(program.path),
            "blocked": bool(blockers),
            "blockers": [asdict(blocker) for blocker in blockers],
            "notices": [notice for result in compiled for notice in result.notices],
        }
    )
    out = json_file.console()
    if not quiet:
        print_lines(out, _blocker_lines(blockers))
        for result in compiled:
            regions, einsums = len(result.regions), len(result.program.einsums)
            print_lines(out, [f"nothing blocks `{program.path}`: {einsums} Einsums, {regions} regions"])
            print_notices(out, result.notices)
        if blockers:
            print_lines(out, [f"{len(blockers)} in the way of `{program.path}`"])
    if blockers:
        ctx.exit(1)


def _blocker_lines(blockers: Sequence[Blocker]) -> Iterator[str]:
    """Yield the lines of a numbered list of the blockers, the reasons why a model cannot be compiled."""
    for number, blocker in enumerate(blockers, 1):
        yield f"{number}. {blocker.problem}"
        places = {
            "module": f"`{blocker.module}`" if blocker.module else "",
            "line": blocker.line or "",
            "library": blocker.library,
            "shape": "" if blocker.shape is None else shape_text(blocker.shape) or "a number",
            "instead": blocker.hint if blocker.alternative else "",
            "no alternative": "" if blocker.alternative else blocker.hint or "none is known",
        }
        yield from (f"   {name}: {text}" for name, text in places.items() if text)
        yield from (f"   note: {note}" for note in blocker.notes)
