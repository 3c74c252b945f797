"""The inputs that a training step does not change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fuseflow.einsum.phases import carried_inputs
from fuseflow.frontend.imported_program import Source
from fuseflow.tensors import Tensor

FEW_ROWS = 0.5
"""The share of its rows in which a matrix stores entries, below which these are few."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The inputs that a training step does not change, by name. Those in `few_rows` are compressed matrices that store entries in few of
    their rows."""

    names: frozenset[str]
    few_rows: frozenset[str]

    @classmethod
    def of(cls, source: Source, fixed: Collection[str]) -> Constants:
        """Return the constants of a step, without those in `fixed`, about which the user decided."""
        carried = carried_inputs(source.program).values()
        free = [t for t in source.program.inputs if t.name not in carried and t.name not in fixed and not t.block]
        sparse = {t.name: source.tensors.get(t.name) for t in free if len(t.shape) == 2 and t.format and not t.format.all_dense}
        matrices = {name: tensor for name, tensor in sparse.items() if tensor is not None}
        return cls(
            frozenset(t.name for t in free),
            frozenset(name for name, tensor in matrices.items() if stored_rows(tensor) < FEW_ROWS * tensor.shape[0]),
        )


def stored_rows(tensor: Tensor) -> int:
    """Return the number of rows of a matrix that store something."""
    (rows, _), _ = tensor.entries()
    return len(np.unique(rows))
