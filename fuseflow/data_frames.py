"""Tables of results as a `DataFrame` of pandas or a `Dataset` of xarray. Both libraries are imported only here, and only when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuseflow.errors import UsageError
from fuseflow.requirements import install_command

if TYPE_CHECKING:
    import pandas
    import xarray


def required(package: str, method: str) -> Any:
    """Return a package that a method needs. Raise `UsageError` with the command that installs it where it is missing."""
    try:
        return import_module(package)
    except ImportError:
        raise UsageError(f"`{method}` needs {package}", hint=install_command(package)) from None


def data_frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """Return rows as a `DataFrame`, with these columns, or with all keys in the order in which they come. Missing values are missing there,
    too: whole numbers with gaps are `Int64`. Raise `UsageError` without pandas."""
    pandas = required("pandas", "to_pandas")
    listed = list(rows)
    names = list(dict.fromkeys(key for row in listed for key in row)) if columns is None else list(columns)
    values = {name: [row.get(name) for row in listed] for name in names}
    whole = {name: pandas.array(column, dtype="Int64") for name, column in values.items() if _is_whole_with_gaps(column)}
    return pandas.DataFrame({**values, **whole}, columns=names)


def _is_whole_with_gaps(column: Sequence[Any]) -> bool:
    """Return whether a column has whole numbers and gaps, of which pandas would make floats."""
    present = [value for value in column if value is not None]
    return 0 < len(present) < len(column) and all(type(value) is int for value in present)


def dataset(
    rows: Sequence[Mapping[str, Any]], axes: Sequence[str], variables: Sequence[str], attributes: Mapping[str, Mapping[str, str]]
) -> xarray.Dataset:
    """Return rows as a `Dataset`: an array over the `axes` for each of the `variables`, whose `attributes` say what it means. Coordinates
    are in the order of the rows. A place without a row is NaN, or an empty text. Raise `UsageError` without xarray."""
    import numpy as np

    library = required("xarray", "to_xarray")
    coordinates = {axis: list(dict.fromkeys(row[axis] for row in rows)) for axis in axes}
    shape = tuple(map(len, coordinates.values()))
    places = [tuple(coordinates[axis].index(row[axis]) for axis in axes) for row in rows]
    arrays: dict[str, Any] = {}
    for name in variables:
        texts = any(isinstance(row.get(name), str) for row in rows)
        array = np.full(shape, "" if texts else np.nan, dtype=object if texts else np.float64)
        for place, row in zip(places, rows, strict=True):
            if row.get(name) is not None:
                array[place] = row[name]
        arrays[name] = (tuple(axes), array.astype(str) if texts else array, dict(attributes.get(name, {})))
    made: xarray.Dataset = library.Dataset(arrays, coords=coordinates)
    return made
