"""The inputs that a training step does not change."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.frontend.imported_program import Source
from fuseflow.tensors import Tensor

NEW_VALUE = "next."
"""The beginning of the name of the output that is the new value of an input."""
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
        changed = changed_inputs(source.program)
        free = [t for t in source.program.inputs if t.name not in changed and t.name not in fixed and not t.block]
        sparse = {t.name: source.tensors.get(t.name) for t in free if len(t.shape) == 2 and t.format and not t.format.all_dense}
        matrices = {name: tensor for name, tensor in sparse.items() if tensor is not None}
        return cls(
            frozenset(t.name for t in free),
            frozenset(name for name, tensor in matrices.items() if stored_rows(tensor) < FEW_ROWS * tensor.shape[0]),
        )


def changed_inputs(program: Program) -> dict[str, str]:
    """Return the inputs of a program that a step changes, each with the output that is its new value: `next.W` is that of `W`.

    >>> from fuseflow.einsum.parse import parse
    >>> changed_inputs(parse("tensor W[2]\\n tensor g[2]\\n next.W[i] = W[i] - g[i]\\n output next.W"))
    {'W': 'next.W'}
    """
    return {t.name: f"{NEW_VALUE}{t.name}" for t in program.inputs if f"{NEW_VALUE}{t.name}" in program.outputs}


def stored_rows(tensor: Tensor) -> int:
    """Return the number of rows of a matrix that store something."""
    (rows, _), _ = tensor.entries()
    return len(np.unique(rows))
