"""Dense tensors of a program of which most is zero, and what to type to store the rest alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.tensors import Tensor

LEAST_SHARE = 0.7
"""The share of zeros from which on a notice says so."""
LEAST_ENTRIES = 256
"""A tensor with fewer entries, or a vector, takes too little time for a notice."""
MOST_NAMED = 4


def mostly_zero_notice(program: Program, tensors: Mapping[str, Tensor], chosen: Collection[str]) -> str:
    """Return a text that names the inputs that are dense and mostly zero, or '' if there are none. The user has `chosen` the formats of
    some."""
    shares: dict[str, float] = {}
    ranks: dict[str, int] = {}
    for declared in program.inputs:
        tensor = tensors.get(declared.name)
        if tensor is None or declared.name in chosen or declared.format is None or not declared.format.all_dense:
            continue
        if not tensor.format.all_dense or tensor.format.rank < 2 or tensor.values.size < LEAST_ENTRIES or tensor.fill != 0:
            continue
        share = 1 - np.count_nonzero(tensor.values) / tensor.values.size
        if share > LEAST_SHARE:
            shares[declared.name], ranks[declared.name] = share, tensor.format.rank
    if not shares:
        return ""
    named = sorted(shares, key=lambda name: -shares[name])[:MOST_NAMED]
    zeros = ", ".join(f"{shares[name]:.0%} of `{name}`" for name in named)
    more = f" and most of {len(shares) - len(named)} more" if len(shares) > len(named) else ""
    options = " ".join(f"--format {_option(name, ranks[name])}" for name in named)
    return f"stored dense though zero: {zeros}{more}; `{options}` stores only what is not zero"


def _option(name: str, rank: int) -> str:
    return f"{name}=csr" if rank == 2 else f'"{name}=({"dense, " * (rank - 1)}compressed)"'
