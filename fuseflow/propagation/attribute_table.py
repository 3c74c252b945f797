"""The rows of the table that `fuseflow propagate` prints: an analysis in numbers, one row for each tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.propagation.analysis import Analysis
from fuseflow.propagation.dead_code import Cuts, Propagation
from fuseflow.tensors import Tensor

TensorKind: TypeAlias = Literal["constant", "buffer", "input", "intermediate", "output"]
"""The kind of a tensor: a weight, a buffer, an argument of the model, a result inside of it, or one that it returns. In programs,
buffers count as constants."""


@dataclass(frozen=True, slots=True)
class AttributeRow:
    """The entries of a tensor, counted.

    Of `size` entries, `stored` were stored before the analysis. `dead` ones need not be stored, `constant` ones are known to be another
    number than the implicit value, and `needed` ones are unknown and reach an output. `now` are stored after, in a tensor of `shape_now`.
    `layer` is the part of the model that the tensor belongs to, and "" at its top.
    """

    name: str
    kind: TensorKind
    layer: str
    shape: tuple[int, ...]
    size: int
    stored: int
    dead: int
    constant: int
    needed: int
    now: int
    shape_now: tuple[int, ...]

    @property
    def dead_share(self) -> float:
        """The share of the entries that is dead."""
        return self.dead / self.size if self.size else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {**asdict(self), "shape": list(self.shape), "shape_now": list(self.shape_now)}


def total(rows: Iterable[AttributeRow], layer: str, kind: TensorKind = "constant") -> AttributeRow:
    """Return the sums of the counts of rows, as one row of this layer."""
    summed = list(rows)
    sums = {name: sum(getattr(row, name) for row in summed) for name in ("size", "stored", "dead", "constant", "needed", "now")}
    return AttributeRow("total", kind, layer, (), shape_now=(), **sums)


def attribute_rows(
    program: Program, tensors: Mapping[str, Tensor], analysis: Analysis, propagation: Propagation, constants: Iterable[str]
) -> tuple[AttributeRow, ...]:
    """Return a row for each tensor of a program: its inputs in order, then its results.

    `propagation` has the program after the cuts. A result stores all its entries before them, and only entries that are not dead after.
    """
    fixed, cuts, left = set(constants), propagation.cuts, propagation.program.defined
    rows: list[AttributeRow] = []
    for declared in program.inputs:
        name, tensor = declared.name, tensors.get(declared.name)
        stored = _entries(tensor, declared.shape)
        now = stored if tensor is None else _entries(propagation.tensors.get(name))
        layer = name.rpartition(".")[0]
        rows.append(_row(name, "constant" if name in fixed else "input", layer, analysis, stored, now, cuts))
    for einsum in program.einsums:
        kind: TensorKind = "output" if einsum.name in program.outputs else "intermediate"
        dead = analysis.dead_mask(einsum.name)
        now = (~dead).count() if einsum.name in left else 0
        rows.append(_row(einsum.name, kind, einsum.location.path, analysis, dead.size, now, cuts))
    return tuple(rows)


def _row(name: str, kind: TensorKind, layer: str, analysis: Analysis, stored: int, now: int, cuts: Cuts) -> AttributeRow:
    dead, shape = analysis.dead_mask(name), analysis.program.declared[name].shape
    constant, needed = analysis.constant_mask(name).count(), analysis.needed_mask(name).count()
    return AttributeRow(name, kind, layer, shape, dead.size, stored, dead.count(), constant, needed, now, cuts.shape(name, shape))


def _entries(tensor: Tensor | None, shape: tuple[int, ...] = ()) -> int:
    """Return the number of entries that a tensor stores, or the number of elements of `shape` if there is no tensor."""
    if tensor is None:
        return int(np.prod(shape, dtype=np.int64)) if shape else 0
    return tensor.stored if tensor.tile or tensor.format.all_dense else tensor.coordinates().shape[1]
