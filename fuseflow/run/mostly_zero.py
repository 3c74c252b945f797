"""Dense tensors of a program of which most is zero, and what to type to store the rest alone."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.tensors import Tensor
from fuseflow.tensors.format_patterns import is_pattern

LEAST_SHARE = 0.7
"""The share of zeros from which on a notice says so."""
LEAST_ENTRIES = 256
"""A tensor with fewer entries, or a vector, takes too little time for a notice."""
MOST_NAMED = 4


def mostly_zero_notice(program: Program, tensors: Mapping[str, Tensor], chosen: Collection[str]) -> str:
    """Return a text that names the inputs that are dense and mostly zero, or '' if there are none. The user has `chosen` the formats of
    some. The flags in it store these in a sparse format, and no input that is not mostly zero."""
    ranks = {declared.name: len(declared.shape) for declared in program.inputs}
    shares = {name: _zero_share(name, program, tensors) for name in ranks if name not in chosen}
    sparse = {name: share for name, share in shares.items() if share > LEAST_SHARE}
    named = [name for name in sparse if ranks[name] > 1 and tensors[name].values.size >= LEAST_ENTRIES]
    if not named:
        return ""
    named.sort(key=lambda name: -sparse[name])
    zeros = ", ".join(f"{sparse[name]:.0%} of `{name}`" for name in named[:MOST_NAMED])
    more = f" and most of {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    flags: list[str] = []
    for rank in dict.fromkeys(ranks[name] for name in named):
        others = [name for name in ranks if ranks[name] == rank and name not in sparse]
        names = _shortened([name for name in named if ranks[name] == rank], others)
        flags += [f"--format {_option(name, rank)}" for name in names]
    return f"stored dense though zero: {zeros}{more}; `{' '.join(flags[:MOST_NAMED])}` stores only what is not zero"


def _zero_share(name: str, program: Program, tensors: Mapping[str, Tensor]) -> float:
    """Return the share of zeros among the entries that an input stores densely, or 0 if it does not."""
    format, tensor = program.declared[name].format, tensors.get(name)
    if tensor is None or format is None or not (format.all_dense and tensor.format.all_dense) or tensor.fill != 0:
        return 0.0
    return float(1 - np.count_nonzero(tensor.values) / tensor.values.size) if tensor.values.size else 0.0


def _shortened(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return names and patterns that match these names, and none of the others. Of several patterns the one that matches most is taken, and
    of these the shortest."""
    patterns = dict.fromkeys(pattern for name in names for pattern in _patterns(name))
    fitting = [pattern for pattern in patterns if not fnmatch.filter(others, pattern)]
    left, chosen = list(names), list[str]()
    while left:
        matched = {pattern: fnmatch.filter(left, pattern) for pattern in fitting}
        best = max(matched, key=lambda pattern: (len(matched[pattern]), -len(pattern)), default="")
        best = best if best and len(matched[best]) > 1 else left[0]
        chosen.append(best)
        left = [name for name in left if not fnmatch.fnmatchcase(name, best)]
    return chosen


def _patterns(name: str) -> Iterator[str]:
    """Yield the patterns that leave out words of a dotted name: all before its end, or those between its start and its end."""
    words = name.split(".")
    for start in range(len(words) - 1):
        for end in range(start + 1, len(words)):
            yield ".".join((*words[:start], "*", *words[end:]))


def _option(name: str, rank: int) -> str:
    """Return a format of a tensor, or of those that a pattern matches, as a shell takes it."""
    if rank == 2:
        return f"'{name}=csr'" if is_pattern(name) else f"{name}=csr"
    return f'"{name}=({"dense, " * (rank - 1)}compressed)"'
