"""The action of the command `fuseflow report`, which `cli/report.py` declares."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fuseflow.cli.common import JsonFile, console, print_lines, require_writable, write_out
from fuseflow.cli.progress import counting_bar, following
from fuseflow.errors import UsageError
from fuseflow.filesystem import json_text, read_json, write_text
from fuseflow.report.page.comparison import comparison_page
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.run.directory_names import MANIFEST

PAGE = "report.html"
COMPARISON = "comparison.html"
SWEEP_SUFFIXES = (".yaml", ".yml")


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
    is_sweep = run.suffix in SWEEP_SUFFIXES and not run.is_dir()
    _refuse_unused(is_sweep, other, cycles, baseline, store, no_runs)
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
    if target.exists() and any(target.samefile(source) for source in (run, other, cycles, baseline) if source is not None):
        raise UsageError(f"`{target}` would be overwritten, and is what the page is made of", hint="`-o page.html`")
    content = make()
    if run.is_dir() and target.absolute() == (run / PAGE).absolute():
        _note(run)
    write_out(content, target)
    json_file.write(lambda: about)
    if not quiet:
        print_lines(console(stderr=True), [f"report: {target}"])


def _sweep(run: Path, store: Path | None, no_runs: bool, quiet: bool) -> str:
    """Return the page of the sweep file `run`. `no_runs` leaves the pages of its runs out."""
    from fuseflow.cli.actions.sweep import open_sweep  # both load what reads sweeps, which pages of runs do not need
    from fuseflow.report.page.sweep_page import sweep_page

    with open_sweep(run, store, must_exist=True) as sweep, counting_bar("pages of points", quiet) as progress:
        return sweep_page(sweep, not no_runs, progress)


def _runs(run: Path, other: Path | None, cycles: Path | None, baseline: Path | None, quiet: bool) -> str:
    """Return the page of a run, or the page that compares two runs."""
    with following("laying out graphs", quiet):
        if other is not None:
            return comparison_page(read_run(run), read_run(other), (str(run), str(other)))
        return page(read_run(run, cycles), None if baseline is None else (str(baseline), read_run(baseline)))


def _refuse_unused(
    is_sweep: bool, other: Path | None, cycles: Path | None, baseline: Path | None, store: Path | None, no_runs: bool
) -> None:
    """Raise `UsageError` for an option that the requested page would not use."""
    is_one_run = not is_sweep and other is None
    if other is not None and is_sweep:
        raise UsageError("two runs can be compared, and a sweep has its own comparison", hint="`fuseflow report SWEEP`")
    if baseline is not None and not is_one_run:
        raise UsageError("`--baseline` is for the page of one run", hint="`fuseflow report A B` compares two, A is the baseline")
    if cycles is not None and not is_one_run:
        kept = "`fuseflow run -o DIR --explain` keeps it in the directory of each run"
        raise UsageError("`--cycles` explains one run", hint=kept)
    if no_runs and not is_sweep:
        raise UsageError("`--no-runs` is for the page of a sweep, and RUN is none", hint="`fuseflow report SWEEP.yaml --no-runs`")
    if store is not None and not is_sweep:
        given = "`fuseflow report SWEEP.yaml --store FILE`"
        raise UsageError("`--store` has the results of a sweep, and RUN is none", hint=given)


def _note(run: Path) -> None:
    """Add the page to the manifest of the directory of a run before the page is written, so that the next run may replace it."""
    about = read_json(run / MANIFEST)
    files = about.get("files") if isinstance(about, dict) else None
    if isinstance(files, list) and PAGE not in files:
        about["files"] = sorted([*map(str, files), PAGE])
        write_text(run / MANIFEST, json_text(about))
