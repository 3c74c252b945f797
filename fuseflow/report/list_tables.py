"""The data that `--data` may name, the sizes of data that are loaded, and the memories that a machine may name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from fuseflow.memory.table_files import preset, preset_names
from fuseflow.report.tables import plain_table

if TYPE_CHECKING:
    from fuseflow.frontend.data import DataEntry, DataSizes


def data_table(entries: Iterable[DataEntry]) -> Table:
    """Return a table of data sets."""
    table = plain_table("data", "there", "what it is", numbers_from=3)
    for entry in entries:
        table.add_row(escape(entry.spec), "yes" if entry.is_there else "no", escape(entry.what))
    return table


def file_lines(entries: Iterable[DataEntry]) -> Iterator[str]:
    """Yield lines about the files of the data sets that need some."""
    for entry in entries:
        if entry.files:
            where = entry.folder or " or ".join(f"DIR/{place}" for place in entry.places).replace("/.", "")
            yield f"{entry.spec}: {_file_names(entry.files)} in {where}"


def _file_names(files: Sequence[str]) -> str:
    """Return names of files, without what all begin with up to a point, as in `ind.cora.x, .y`."""
    stem = files[0].rpartition(".")[0]
    shared = all(file.startswith(f"{stem}.") for file in files)
    return ", ".join((files[0], *(file.removeprefix(stem) if shared else file for file in files[1:])))


def size_lines(sizes: DataSizes) -> Iterator[str]:
    """Yield lines about the sizes of data."""
    yield f"data      {sizes.data}"
    yield f"nodes     {sizes.nodes:,}"
    if sizes.edges is not None and sizes.edge_density is not None:
        degrees = f"{sizes.mean_degree:,.1f} in the mean and {sizes.largest_degree:,} at most from a node"
        yield f"edges     {sizes.edges:,}, a density of {sizes.edge_density:.3g}; {degrees}"
    yield f"features  {sizes.features:,}, with {sizes.stored_features:,} stored, a density of {sizes.feature_density:.3g}"
    yield f"classes   {sizes.classes:,}"
    if sizes.training is not None:
        yield f"training  {sizes.training:,} nodes"


def preset_table() -> Table:
    """Return a table of the presets of memories: the bytes of a nanosecond at most, the nanoseconds of a read in an idle channel whose bank
    has the row open (hit), is closed, or has another row open (conflict), and for each kind of refresh the shares of the peak that patterns
    of lines reach."""
    table = plain_table(
        "DRAM", "refresh", "channels", "peak\nGB/s", "hit\nns", "closed\nns", "conflict\nns", "in order\n% of peak",
        "4 KB apart\n% of peak", "random\n% of peak", numbers_from=2,
    )  # fmt: skip
    for name in preset_names():
        file = preset(name)
        dram = file.table()
        times = (f"{cycles * dram.cycle_ps / 1000:.1f}" for cycles in dram.idle_reads())
        cells = (str(dram.channels), f"{dram.channels * dram.peak:.1f}", *times)
        for kind in (each.refresh for each in file.tables if each.refresh != "none"):
            measured = dict(file.measured)[kind]
            shares = (measured.sequential, measured.strided, measured.random)
            table.add_row(name, kind, *cells, *(f"{share:.1f}" for share in shares))
    return table
