"""`fuseflow.sweep`: all points of a design space, estimated or simulated on several processes, as one table."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.data_frames import data_frame, dataset
from fuseflow.errors import SweepError, UsageError
from fuseflow.report.column_meanings import column_meaning
from fuseflow.report.sweep_table import CLOCKED, Record, SweepRows, count_progress, objective_column, records, shared_values
from fuseflow.requirements import install_command
from fuseflow.schedule import Schedule
from fuseflow.sim.processors import cores
from fuseflow.sweep.design_space import DesignSpace, LabeledPoint
from fuseflow.sweep.point import Task, TaskOutcome
from fuseflow.sweep.pool import Pool
from fuseflow.sweep.store import Store
from fuseflow.sweep.sweep import Runner, Sweep, SweepProgress

if TYPE_CHECKING:
    import pandas
    import xarray

UNITS = {
    "cycles": "cycles", "bytes": "bytes", "flops": "FLOPs", "pj": "pJ", "low": "cycles", "high": "cycles", "seconds": "s", "mb": "MB",
}  # fmt: skip
"""The unit of a column, by a word of its name."""


@contextmanager
def open_sweep(space: DesignSpace, store: Path, again: Collection[str] = (), keep_runs: bool = True) -> Iterator[Sweep]:
    """Open a sweep with its store, which is made if it does not exist."""
    with Store.open(store) as opened:
        yield Sweep(space, opened, frozenset(again), keep_runs)


@contextmanager
def open_results(file: Path, store: Path | None) -> Iterator[Sweep]:
    """Open the sweep of a file with the results that a store has, or `default_store`. Raises `SweepError` if there are none."""
    path = store or default_store(file)
    if not path.exists():
        hint = f"`fuseflow sweep {file}` makes them, or name them: `--store FILE`"
        raise SweepError(f"there are no results in `{path}`", hint=hint)
    with open_sweep(DesignSpace.of(file), path) as opened:
        yield opened


def default_store(file: Path) -> Path:
    """Return where the commands keep the results of a sweep, if nobody says so."""
    return Path("out") / f"{file.stem}.sqlite"


def memory_limit(jobs: int | None, memory: str | int | None, scheduler: str | None) -> int | None:
    """Return the bytes that processes of this machine may take together. Raises `UsageError` for a text that is no size, for no jobs, and
    for limits beside a cluster."""
    if scheduler is not None and (jobs or memory):
        name = "jobs" if jobs else "memory"
        raise UsageError(f"`{name}` is for processes of this machine, not for a cluster", hint="set it where its workers start")
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} jobs run nothing", hint="`jobs=2` runs two points at a time")
    return memory_bytes(memory) if isinstance(memory, str) else memory


def make_runner(jobs: int | None, memory: int | None, scheduler: str | None) -> Runner:
    """Return processes of this machine, `jobs` at a time within this `memory` in bytes, or the Dask cluster of a `scheduler`. Raises
    `UsageError` without Dask."""
    if scheduler is None:
        return Pool(jobs or cores(), memory)
    try:
        from fuseflow.sweep.dask_runner import DaskRunner
    except ImportError:
        raise UsageError("a cluster needs Dask", hint=install_command("distributed")) from None
    return DaskRunner(scheduler)


def memory_bytes(text: str) -> int:
    """Return a size of memory in bytes. Its units are those of files, which are powers of 10.

    >>> memory_bytes("8GB")
    8000000000
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"a memory of `{text}` is no size", hint="write `8GB`")
    return int(float(match[1]) * 1000 ** " KMGT".index(match[2].upper() or " "))


def refuse_kept_runs(again: Collection[str], no_runs: bool) -> None:
    """Raise `UsageError` if runs shall be made in order to be kept, and none shall be kept."""
    if no_runs and "unkept" in again:
        raise UsageError("`again` with `unkept` makes runs to keep them, and `no-runs` keeps none", hint="leave one of them out")


@dataclass(frozen=True, slots=True, eq=False)
class SweepResult:
    """The points of a sweep with their results, in the order of its design space. It is a sequence of rows: dictionaries by column.

    A row has a label for every axis (`model`, `data`, `machine`, `fuse`, `par`, ...), its `status`, and numbers: `estimated_cycles`,
    `cycles`, `bytes_read`, `flops`, and the others that `fuseflow sweep show --format csv` prints. `to_best` is the objective over the best
    one of the same model, data and machine. A point that failed has its `reason` and its `error`, and no numbers.

    >>> import fuseflow as ff
    >>> result = ff.sweep({"model": "docs/example/spmm.ein", "tensors": "docs/example/tensors.yaml", "vary": {"fuse": ["full"]}}, jobs=1)
    >>> len(result), result[0]["fuse"], result.schedules[0]
    (1, 'full', ff.Schedule.fuse('full'))
    """

    space: DesignSpace
    """The design space."""
    store: Path
    """The file with the results. It is temporary if none was asked for, and gone with this value."""
    table: SweepRows
    _objective: str
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"<SweepResult {self.space.file.path.stem}: {len(self)} points{failed}, {shared_values(self.table)}>"

    def _repr_html_(self) -> str:
        return self._shown._repr_html_()

    def __len__(self) -> int:
        return len(self.table.lines)

    def __iter__(self) -> Iterator[Record]:
        return map(dict, self.table.lines)

    def __getitem__(self, number: int) -> Record:
        return dict(self.table.lines[number])

    @property
    def _shown(self) -> SweepRows:
        """The rows without the columns that differ from run to run."""
        return replace(self.table, columns=tuple(name for name in self.table.columns if name not in CLOCKED))

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedule of each row."""
        return tuple(Schedule.from_yaml(place.point.schedule) for place in self.space.points)

    @property
    def failed(self) -> tuple[Record, ...]:
        """The rows of points that failed."""
        return tuple(row for row in self if row["status"] == "failed")

    @property
    def best(self) -> int:
        """The number of the row with the least objective, which is cycles unless the sweep says otherwise. Raises `SweepError` if no point
        has a result."""
        numbers = {k: value for k, row in enumerate(self) if isinstance(value := row.get(self._objective), int | float)}
        if not numbers:
            raise SweepError("no point of the sweep has a result", hint=self.failed[0]["error"] if self.failed else "")  # type: ignore[arg-type]
        return min(numbers, key=numbers.__getitem__)

    def to_dict(self) -> dict[str, Any]:
        """Return the sweep as plain values: its `axes` with more than one value, its `objective`, and its `rows`."""
        columns = self._shown.columns
        rows = [{name: row.get(name) for name in columns} for row in self]
        return {"axes": list(self.space.axes), "objective": self._objective, "rows": rows}

    def to_pandas(self, timing: bool = False) -> pandas.DataFrame:
        """Return a row for each point as a `DataFrame` of pandas. With `timing`, it also has the seconds and the memory that each point
        took, which differ from run to run. Raises `UsageError` without pandas, with the command that installs it."""
        return data_frame(self, self.table.columns if timing else self._shown.columns)

    def to_xarray(self) -> xarray.Dataset:
        """Return the numbers as a `Dataset` of xarray, over the axes on which points differ. A number is missing (NaN) where a point
        failed, and where it equals another one, which stands once. Attributes have units and meanings.

        Raises `UsageError` without xarray."""
        texts = {*self.table.axes, "reason", "error"}
        names = [name for name in self._shown.columns if name not in texts and any(row.get(name) is not None for row in self)]
        return dataset(list(self), self.space.axes, names, {name: _attributes(name) for name in names})


def _attributes(column: str) -> dict[str, str]:
    words = column.split("_")
    unit = next((UNITS[word] for word in words if word in UNITS), "")
    return {"long_name": column_meaning(" ".join(words)) or column, **({"units": unit} if unit else {})}


def sweep(
    space: str | Path | Mapping[str, Any] | DesignSpace,
    *,
    store: str | Path | None = None,
    jobs: int | None = None,
    memory: str | int | None = None,
    scheduler: str | None = None,
    again: Collection[str] = (),
    no_runs: bool = False,
    progress: Callable[[SweepProgress], None] | None = None,
) -> SweepResult:
    """Estimate or simulate every point of a design space that is not done yet, as `fuseflow sweep run` does, and return all results.

    `space` is a sweep file in YAML, a mapping with the same keys, in which schedules and machines may be values, or a `DesignSpace`. Models
    are named by their files, since the processes read them. `store` is the file that keeps results: what is in it is not done again.
    Without one, results are gone with the value that is returned. `jobs` points run at a time, each in a process (None: as many as there
    are cores), which together take at most `memory`, in bytes or as `"8GB"` (None: most of what is free). `scheduler` is the address of a
    Dask scheduler, whose workers run the points instead. `again` names points to do once more: `failed`, `stale` (of another fuseflow), or
    `unkept`. Unless `no_runs`, the runs of simulations are kept for `fuseflow.report`. `progress` is called after every point.

    A point that fails is a row with its error. Raises `SweepError`, or another `FuseFlowError`, for a space that is wrong.

    >>> import fuseflow as ff
    >>> space = {"model": "docs/example/spmm.ein", "tensors": "docs/example/tensors.yaml", "vary": {"fuse": ["none", "full"]}}
    >>> result = ff.sweep(space, jobs=1)
    >>> [(row["fuse"], row["status"]) for row in result]
    [('none', 'estimated'), ('full', 'estimated')]
    >>> result.schedules[result.best]
    ff.Schedule.fuse('full')
    """
    refuse_kept_runs(again, no_runs)
    known = ("failed", "stale", "unkept")
    if isinstance(again, str) or any(word not in known for word in again):
        raise UsageError(f"`again={again!r}` names no points", hint=f"a list of some of {', '.join(known)}")
    limit, points = memory_limit(jobs, memory, scheduler), DesignSpace.of(space)
    folder = None if store is not None else tempfile.TemporaryDirectory(prefix="fuseflow-sweep-")
    path = Path(store) if folder is None else Path(folder.name) / "sweep.sqlite"  # type: ignore[arg-type]
    with open_sweep(points, path, again, not no_runs) as opened, opened.store.writing():
        tally = count_progress(opened)
        if tally.left or opened.redo:
            with closing(make_runner(jobs, limit, scheduler)) as runner:
                opened.run(runner, _noting(tally, progress))
        return SweepResult(points, path, records(opened, clocked=True), objective_column(opened), folder)


def _noting(
    tally: SweepProgress, progress: Callable[[SweepProgress], None] | None
) -> Callable[[LabeledPoint, Task, TaskOutcome], None]:
    """Return a callback of a sweep that counts each point, and tells `progress`."""

    def note(place: LabeledPoint, task: Task, outcome: TaskOutcome) -> None:
        tally.note(place, task.mode, outcome)
        if progress is not None:
            progress(tally)

    return note
