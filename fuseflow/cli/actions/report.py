"""The action of the command `fuseflow report`, which `cli/report.py` declares."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fuseflow.cli.common import JsonFile, console, print_lines, require_writable, write_out
from fuseflow.cli.progress import counting_bar, following
from fuseflow.errors import UsageError
from fuseflow.interface.reports import PAGE, is_sweep_file, note_page, refuse_overwriting, refuse_unused, run_page

COMPARISON = "comparison.html"


def report(
    run: Path,
    other: Path | None,
    output: Path | None,
    cycles: Path | None,
    baseline: Path | None,
    store: Path | None,
    no_runs: bool,
    json_file: JsonFile,
    quiet: bool,
) -> None:
    is_sweep = is_sweep_file(run)
    refuse_unused(is_sweep, other, cycles, baseline, store, no_runs)
    make = partial(_sweep, run, store, no_runs, quiet) if is_sweep else partial(_runs, run, other, cycles, baseline, quiet)
    beside = run / PAGE if run.is_dir() else run.with_suffix(".html")
    target = output or (beside if other is None else Path(COMPARISON))
    sources = [str(path) for path in (run, other, cycles, baseline) if path is not None]
    about = {
        "schema": 1,
        "page": str(target),
        "kind": "sweep" if is_sweep else "run" if other is None else "comparison",
        "of": sources,
    }
    if str(target) == "-":
        if json_file.to_stdout:
            raise UsageError("`--json` and `-o` both write standard output", hint="give one of them a file")
        write_out(make(), None)
        json_file.write(lambda: about)
        return
    require_writable(target, directory=False)
    refuse_overwriting(target, run, other, cycles, baseline)
    content = make()
    note_page(run, target)
    write_out(content, target)
    json_file.write(lambda: about)
    if not quiet:
        print_lines(console(stderr=True), [f"report: {target}"])


def _sweep(run: Path, store: Path | None, no_runs: bool, quiet: bool) -> str:
    """Return the page of the sweep file `run`. `no_runs` leaves the pages of its runs out."""
    from fuseflow.interface.sweeps import open_results  # both load what reads sweeps, which pages of runs do not need
    from fuseflow.report.page.sweep_page import sweep_page

    with open_results(run, store) as sweep, counting_bar("pages of points", quiet) as progress:
        return sweep_page(sweep, not no_runs, progress)


def _runs(run: Path, other: Path | None, cycles: Path | None, baseline: Path | None, quiet: bool) -> str:
    """Return the page of a run, or the page that compares two runs."""
    with following("laying out graphs", quiet):
        return run_page(run, other, cycles, baseline)
