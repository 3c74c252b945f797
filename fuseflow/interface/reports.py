"""`fuseflow.report`: a run, a comparison of two runs, or a sweep as one HTML page."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fuseflow.errors import UsageError
from fuseflow.filesystem import json_text, read_json, write_text
from fuseflow.report.page.comparison import comparison_page
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import StoredRun, read_explanation, read_packed_run, read_run, require_same_run
from fuseflow.run.compiled import Compiled
from fuseflow.run.directory_names import MANIFEST
from fuseflow.run.result import Result
from fuseflow.run.run_archive import pack_run

if TYPE_CHECKING:
    from fuseflow.interface.explanations import Explanation
    from fuseflow.interface.sweeps import SweepResult

PAGE = "report.html"
"""The name of the page in the directory of a run."""
SWEEP_SUFFIXES = (".yaml", ".yml")
FRAME_HEIGHT = 800
"""The height of a page in a notebook, in pixels."""
Run: TypeAlias = str | Path | Result
"""A run: the directory or the file that `fuseflow run` wrote, or the value itself."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page in HTML, which needs no network and no other file. A notebook shows it.

    >>> Page("<p>cycles</p>").html
    '<p>cycles</p>'
    """

    html: str

    def __repr__(self) -> str:
        return f"<Page of {len(self.html):,} characters>"

    def save(self, path: str | Path) -> None:
        """Write the page to a file. Raises `FileError` where it cannot be written."""
        write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'


def is_sweep_file(run: object) -> bool:
    """Return whether a run is named by the file of a sweep."""
    return isinstance(run, str | Path) and Path(run).suffix in SWEEP_SUFFIXES and not Path(run).is_dir()


def run_page(
    run: Run,
    other: Run | None = None,
    cycles: str | Path | Explanation | None = None,
    baseline: Run | None = None,
    program: Compiled | None = None,
) -> str:
    """Return the page of a run, or the page that compares two runs."""
    if other is not None:
        return comparison_page(_stored(run), _stored(other), (_name(run), _name(other)))
    return page(_stored(run, cycles, program), None if baseline is None else (_name(baseline), _stored(baseline)))


def _stored(run: Run, cycles: str | Path | Explanation | None = None, program: Compiled | None = None) -> StoredRun:
    """Return a run as pages read it. A run that is a value has its regions' loops, tables and graphs if its program is given."""
    path = Path(cycles) if isinstance(cycles, str | Path) else None
    if isinstance(run, str | Path):
        stored = read_run(Path(run), path)
    else:
        stored = StoredRun(run.to_dict()) if program is None else read_packed_run(pack_run(program, run), Path())
        stored = stored if path is None else replace(stored, cycles=read_explanation(path, stored.result))
    if cycles is None or isinstance(cycles, str | Path):
        return stored
    return replace(stored, cycles=require_same_run(cycles.values, stored.result, "`cycles`"))


def _name(run: Run) -> str:
    return str(run) if isinstance(run, str | Path) else run.settings.model


def refuse_unused(
    is_sweep: bool, other: object, cycles: object, baseline: object, store: object, no_runs: bool, program: object = None
) -> None:
    """Raise `UsageError` for an option that the requested page would not use."""
    is_one_run = not is_sweep and other is None
    if other is not None and is_sweep:
        raise UsageError("two runs can be compared, and a sweep has its own comparison", hint="`fuseflow report SWEEP`")
    if baseline is not None and not is_one_run:
        raise UsageError("`baseline` is for the page of one run", hint="`fuseflow report A B` compares two, A is the baseline")
    if cycles is not None and not is_one_run:
        kept = "`fuseflow run -o DIR --explain` keeps it in the directory of each run"
        raise UsageError("`cycles` explains one run", hint=kept)
    if program is not None and not is_one_run:
        raise UsageError("`program` is what one run ran", hint="leave it out")
    if no_runs and not is_sweep:
        raise UsageError("`no-runs` is for the page of a sweep, and RUN is none", hint="`fuseflow report SWEEP.yaml --no-runs`")
    if store is not None and not is_sweep:
        given = "`fuseflow report SWEEP.yaml --store FILE`"
        raise UsageError("`store` has the results of a sweep, and RUN is none", hint=given)


def refuse_overwriting(target: Path, *sources: object) -> None:
    """Raise `UsageError` if the page would be written over one of the files that it is made of."""
    files = [Path(source) for source in sources if isinstance(source, str | Path)]
    if target.exists() and any(target.samefile(file) for file in files):
        raise UsageError(f"`{target}` would be overwritten, and is what the page is made of", hint="write `page.html`")


def note_page(run: object, target: Path) -> None:
    """Add a page in the directory of its run to the manifest there, before the page is written, so that the next run may replace it."""
    if not isinstance(run, str | Path) or not Path(run).is_dir() or (Path(run) / PAGE).absolute() != target.absolute():
        return
    about = read_json(Path(run) / MANIFEST)
    files = about.get("files") if isinstance(about, dict) else None
    if isinstance(files, list) and PAGE not in files:
        about["files"] = sorted([*map(str, files), PAGE])
        write_text(Path(run) / MANIFEST, json_text(about))


def report(
    run: Run | SweepResult,
    other: Run | None = None,
    *,
    output: str | Path | None = None,
    program: Compiled | None = None,
    cycles: str | Path | Explanation | None = None,
    baseline: Run | None = None,
    store: str | Path | None = None,
    no_runs: bool = False,
) -> Page:
    """Return one HTML page about a run, a comparison of two, or a sweep, as `fuseflow report` writes it. A notebook shows it.

    `run` is a `Result`, the directory or the file that `fuseflow run -o DIR` or `--json FILE` wrote, a `SweepResult`, or the file of a
    sweep whose results are in `store`. With `other`, the page compares two runs, and `run` is the baseline. `output` is a file to write the
    page to. The `program` that gave a `Result` adds its loops, tables and graphs. `cycles` adds what `fuseflow.explain(program)` found, as
    a value or as the file of `fuseflow explain cycles --json`. The page of one run may say how much faster it is than a `baseline`. That of
    a sweep has the runs of its points, unless `no_runs`.

    Raises `UsageError` for an argument that the page would not use and for a file that holds no run, and `FileError` for one that cannot be
    read or written.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> program = ff.compile(text, ([[1, 0], [2, 3]], [4, 5]))
    >>> page = ff.report(program.run(), program=program, cycles=ff.explain(program, about="cycles"))
    >>> page.html[:15]
    '<!DOCTYPE html>'
    """
    from fuseflow.interface.sweeps import (  # the command `report` needs them for sweeps alone
        SweepResult,
        open_results,
        open_sweep,
    )
    from fuseflow.report.page.sweep_page import sweep_page

    of_file = is_sweep_file(run)
    if store is not None and isinstance(run, SweepResult):
        raise UsageError("`store` is for the file of a sweep, and a `SweepResult` has one", hint="leave it out")
    refuse_unused(of_file or isinstance(run, SweepResult), other, cycles, baseline, store, no_runs, program)
    if isinstance(run, SweepResult):
        with open_sweep(run.space, run.store) as opened:
            made = Page(sweep_page(opened, not no_runs))
    elif of_file:
        with open_results(Path(str(run)), None if store is None else Path(store)) as opened:
            made = Page(sweep_page(opened, not no_runs))
    else:
        made = Page(run_page(run, other, cycles, baseline, program))
    if output is not None:
        target = Path(output)
        refuse_overwriting(target, run, other, cycles, baseline)
        note_page(run, target)
        made.save(target)
    return made
