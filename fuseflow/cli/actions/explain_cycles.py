"""The action of the command `fuseflow explain cycles`, which `cli/explain_cycles.py` declares."""

from __future__ import annotations

from fuseflow.cli.common import print_notices, print_pieces
from fuseflow.cli.json_file import JsonFile
from fuseflow.cli.progress import expected_firings, firings_bar
from fuseflow.cli.request import ProgramRequest
from fuseflow.cli.target import Target
from fuseflow.explain.cycles import explain_cycles
from fuseflow.report.cycle_tables import cycles_json, cycles_lines


def cycles(
    program: ProgramRequest,
    target: Target,
    top: int,
    no_changes: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    scheduled = program.compile(target, quiet=quiet)
    with firings_bar(quiet, expected_firings(scheduled.compiled)) as progress:
        report = explain_cycles(
            scheduled.compiled, target.engine, progress, with_changes=not no_changes, with_stalls=json_file.path is not None
        )
    json_file.write(lambda: scheduled.json(cycles_json(report)))
    if quiet:
        return
    out = json_file.console()
    print_pieces(out, cycles_lines(report, top))
    print_notices(out, report.result.settings.notices)
