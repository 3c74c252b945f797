"""The data that `--data` may name, as a table and lines, and the sizes of data that are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from fuseflow.frontend.data import DataEntry, DataSizes
from fuseflow.report.tables import plain_table


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
