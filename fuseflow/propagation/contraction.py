"""Sums of products of masks and values over indices, without the space of all of them."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fuseflow.propagation.entries import Entries, flat_numbers
from fuseflow.propagation.labeled import Labeled, union

MAX_POINTS = 1 << 26
"""The most elements of an array of attributes. If a result has more, all of it counts as unknown, which is never wrong."""

Mask: TypeAlias = Labeled | Entries


def contracted(factors: Sequence[Labeled], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]) -> Labeled:
    """Return the sum over `over` of the product of arrays, for each element of `kept`. An index of `over` that no array has
    multiplies the sum by its extent."""
    names = union(*factors)
    present = tuple(name for name in kept if name in names)
    letters = dict(zip(names, string.ascii_letters, strict=False))
    terms = ",".join("".join(letters[name] for name in factor.names) for factor in factors)
    arrays: list[Any] = [factor.array.astype(np.float64) for factor in factors]
    total = np.einsum(f"{terms}->{''.join(letters[name] for name in present)}", *arrays, optimize=len(factors) > 1)
    repeats = math.prod(sizes[name] for name in over if name not in names)
    return Labeled(np.asarray(total) * repeats, present)


def any_product(masks: Sequence[Mask], kept: Sequence[str], over: Sequence[str], sizes: Mapping[str, int]) -> Labeled:
    """Return the mask over `kept` that is true where all masks are, for some element of the other indices. It is true everywhere if it
    would have more than `MAX_POINTS` elements."""
    first = next((mask for mask in masks if isinstance(mask, Entries)), None)
    dense = [mask for mask in masks if isinstance(mask, Labeled)]
    if first is not None:
        return _any_of_entries(first, [mask for mask in masks if mask is not first], kept, sizes)
    return contracted(dense, kept, over, sizes).map(lambda count: count > 0.5)


def _any_of_entries(entries: Entries, others: Sequence[Mask], kept: Sequence[str], sizes: Mapping[str, int]) -> Labeled:
    """Return `any_product` of masks where one mask lists its coordinates: a product of a sparse matrix with a dense one."""
    dense = list[Labeled]()
    for other in others:
        if isinstance(other, Labeled) and not set(other.names) <= set(entries.names):
            dense.append(other)
        else:
            entries = entries.both(other)
    names = union(*dense)
    own = [name for name in kept if name in entries.names]
    shared = [name for name in names if name in entries.names]
    extra = [name for name in kept if name in names and name not in entries.names]
    if _points([*own, *extra], sizes) > MAX_POINTS or _points([*shared, *extra], sizes) > MAX_POINTS:
        return Labeled(np.asarray(True))
    table = any_product(dense, [*shared, *extra], (), sizes).over([*shared, *extra]) if dense else np.ones((), dtype=bool)
    table = np.broadcast_to(table, [sizes[name] for name in (*shared, *extra)])
    counts = _incidence(entries, own, shared, sizes) @ table.reshape(_points(shared, sizes), -1).astype(np.float32)
    return Labeled(np.asarray(counts > 0).reshape([sizes[name] for name in (*own, *extra)]), (*own, *extra))


def _incidence(entries: Entries, rows: Sequence[str], columns: Sequence[str], sizes: Mapping[str, int]) -> Any:
    """Return a matrix of 0 and 1 of listed entries, whose rows are the points of some indices, and whose columns those of
    others."""
    from scipy import sparse  # takes long to load, and few programs have so large tensors

    row, height = flat_numbers(entries, rows, sizes)
    column, width = flat_numbers(entries, columns, sizes)
    return sparse.csr_array((np.ones(len(row), dtype=np.float32), (row, column)), shape=(height, width))


def _points(names: Sequence[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in names)
