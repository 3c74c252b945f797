"""Notices of inputs: of dense ones that are mostly zero, with flags that store only the rest, and of values that are not finite."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from fuseflow.tensors import Tensor
from fuseflow.tensors.format import is_pattern

if TYPE_CHECKING:
    from fuseflow.einsum.nodes import Program

LEAST_SHARE = 0.7
"""The share of zeros above which a tensor counts as mostly zero."""
LEAST_ENTRIES = 256
"""The fewest entries of a tensor that is named. A smaller one, or a vector, takes too little time."""
MOST_NAMED = 4
"""The most tensors, or flags, that a notice names."""


def mostly_zero_notice(program: Program, tensors: Mapping[str, Tensor], chosen: Collection[str]) -> str:
    """Return a text that names the inputs that are dense and mostly zero, or '' if there are none. Inputs whose format the user
    has `chosen` are left out. The flags in the text store these in a sparse format, and no input that is not mostly zero."""
    ranks = {declared.name: len(declared.shape) for declared in program.inputs}
    shares = {name: _zero_share(name, program, tensors) for name in ranks if name not in chosen}
    sparse = {name: share for name, share in shares.items() if share > LEAST_SHARE}
    named = [name for name in sparse if ranks[name] > 1 and tensors[name].values.size >= LEAST_ENTRIES]
    if not named:
        return ""
    named.sort(key=lambda name: -sparse[name])
    zeros = ", ".join(f"{sparse[name]:.0%} of `{name}`" for name in named[:MOST_NAMED])
    more = f" and most of {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    flags = " ".join(islice(_flags(named, ranks, sparse), MOST_NAMED))
    return f"stored dense though zero: {zeros}{more}; `{flags}` stores only what is not zero"


def _zero_share(name: str, program: Program, tensors: Mapping[str, Tensor]) -> float:
    """Return the share of zeros among the entries that an input stores densely, or 0 if it does not."""
    format, tensor = program.declared[name].format, tensors.get(name)
    if tensor is None or format is None or not (format.all_dense and tensor.format.all_dense) or tensor.fill != 0:
        return 0.0
    return float(1 - np.count_nonzero(tensor.values) / tensor.values.size) if tensor.values.size else 0.0


@dataclass(frozen=True, slots=True)
class _Flag:
    """A format for the tensor called `name`, or for all tensors that the pattern `name` matches; `named` are the tensors that need it."""

    name: str
    format: str
    named: frozenset[str]


def _flags(named: Sequence[str], ranks: Mapping[str, int], sparse: Collection[str]) -> Iterator[str]:
    """Yield flags with formats for the tensors that are `named`, quoted for a shell. `ranks` has the dimensions of all inputs. Of
    the patterns that change the format of no tensor that is not `sparse`, the one that matches most comes first, and of these the
    shortest."""
    names = dict.fromkeys(word for name in named for word in (name, *_patterns(name)))
    flags = [flag for word in names if (flag := _flag(word, named, ranks, sparse)) is not None]
    left = set(named)
    while left:
        best = max(flags, key=lambda flag: (len(flag.named & left), not is_pattern(flag.name), -len(flag.name)))
        left -= best.named
        yield f"--format {shlex.quote(f'{best.name}={best.format}')}"


def _flag(name: str, named: Sequence[str], ranks: Mapping[str, int], sparse: Collection[str]) -> _Flag | None:
    """Return the flag for a name or a pattern, or None if a tensor that is not `sparse` would get its format, too."""
    matches = frozenset(fnmatch.filter(named, name))
    its_ranks = {ranks[match] for match in matches}
    rank = next(iter(its_ranks))
    if len(its_ranks) > 1:
        format, its_ranks = "csf", set(ranks.values())
    else:
        format = "csr" if rank == 2 else f"({'dense, ' * (rank - 1)}compressed)"
    stored = (other for other in fnmatch.filter(ranks, name) if ranks[other] in its_ranks)
    return _Flag(name, format, matches) if all(other in sparse for other in stored) else None


def _patterns(name: str) -> Iterator[str]:
    """Yield the patterns that replace words of a dotted name: all before its end, or all between its start and its end."""
    words = name.split(".")
    for start in range(len(words) - 1):
        for end in range(start + 1, len(words)):
            yield ".".join((*words[:start], "*", *words[end:]))


def not_finite_notice(tensors: Mapping[str, Tensor], constants: Collection[str] = ()) -> str:
    """Return a text that counts the values that are not finite in each input, or '' if there are none. Inputs in `constants` may
    have them, as an attention mask does."""
    counts: dict[str, str] = {}
    for name, tensor in tensors.items():
        if name in constants or tensor.values.dtype.kind != "f" or np.isfinite(tensor.values).all():
            continue
        kinds = {"NaN": np.isnan(tensor.values).sum(), "infinite": np.isinf(tensor.values).sum()}
        parts = [f"{count:,} {kind}" for kind, count in kinds.items() if count]
        counts[name] = f"{' and '.join(parts)} in `{name}`"
    if not counts:
        return ""
    more = f" and some in {len(counts) - MOST_NAMED} more" if len(counts) > MOST_NAMED else ""
    return f"inputs have values that are no finite numbers: {', '.join(list(counts.values())[:MOST_NAMED])}{more}"
