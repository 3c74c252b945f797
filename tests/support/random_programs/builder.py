"""A program under construction: its tensors, their values, and the draws that all productions share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import TypeVar

import numpy as np
import torch
import torch_oracle
from hypothesis import strategies as st

from fuseflow.einsum.nodes import (
    Access,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    TensorType,
    accesses,
    free_indices,
    index_names,
    plain_names,
    walk,
)
from fuseflow.keep_rules import Rule
from fuseflow.tensors import Tensor
from fuseflow.tensors.dtypes import dtype_name

from .data import formats, tensors

T = TypeVar("T")

LETTERS = {"a": "ijklxyzw", "b": "pqrtuvfg", "c": "cdehmno"}
"""First letters of the indices of each of the dimension sizes of a program. `c` is the product of the two others, or their
sum, if a program has it."""
SPREAD = "s"
"""An index of a left side that the body lacks."""
SIZES = ((3, 3), (3, 2), (2, 4), (3, 1), (1, 1), (4, 3), (3, 0))

POINTS = 700
"""Of the index space of an Einsum."""
SPACE = 2000
"""Of all the reductions that one Einsum runs in one iteration space, those of what it is made from in every use of it."""
TAME = 1e6
"""The largest finite magnitude: far from where anything overflows, so that rounding stays small and sums may be reordered."""
SURE, SURE_SINGLE = 1e-11, 1e-5
"""How well every value must be determined, relative to the largest: a hundred times better than it is compared. Values of 32 bits are
compared with their own bounds."""


class Builder:
    """Draws one program. Every statement is evaluated as it is made: one whose values rounding may change, or that are not tame, is
    replaced by a simpler one."""

    def __init__(self, draw: st.DrawFn, sizes: Sequence[tuple[int, int]] = SIZES) -> None:
        self.draw = draw
        self.size = dict(zip("ab", draw(st.sampled_from(sizes)), strict=True))
        self.sorts: dict[str, tuple[str, ...]] = {}
        self.tensors: dict[str, Tensor] = {}
        self.values: dict[str, torch_oracle.Value] = {}
        self.declared: list[TensorType] = []
        self.einsums: list[Einsum] = []
        self.finite = True  # no infinity or NaN anywhere
        self.space: dict[str, int] = {}  # by Einsum, points of the loops of all its reductions together
        self.replaced = 0  # statements that were not fair

    # Draws

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == of

    def one(self, choices: Sequence[T]) -> T:
        return self.draw(st.sampled_from(choices))

    def some(self, choices: Sequence[T], least: int = 0) -> list[T]:
        """Some of the choices, in any order."""
        return self.draw(st.lists(st.sampled_from(choices), unique=True, min_size=least)) if choices else []

    def shuffled(self, choices: Sequence[T]) -> list[T]:
        return self.draw(st.permutations(choices))

    # Tensors

    def add_input(self) -> str:
        if self.tensors and self.chance(2):
            sorts = self.sorts[self.one(list(self.tensors))]
        else:
            rank = self.one((2, 2, 2, 1, 1, 3, 0, 4))
            sorts = tuple(self.draw(st.lists(st.sampled_from("aaab"), min_size=rank, max_size=rank)))
        fill = self.one((0.0,) * 6 + (1.0, -math.inf))
        return self.give(sorts, self.draw(tensors(self.shape(sorts), fill)))

    def give(self, sorts: tuple[str, ...], tensor: Tensor) -> str:
        """Add an input. Returns its name."""
        name = f"A{len(self.tensors)}"
        self.sorts[name] = sorts
        self.tensors[name] = tensor
        self.values[name] = torch_oracle.given(tensor.to_dense())
        return name

    def shape(self, sorts: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.size[sort] for sort in sorts)

    def sort(self, index: str) -> str:
        return next((sort for sort, letters in LETTERS.items() if index[0] in letters), "a")

    def sorts_of(self, indices: Sequence[Index]) -> tuple[str, ...]:
        """The sizes of dimensions; a dimension that is split has that of both its indices."""
        return tuple(self.sort(index) if isinstance(index, str) else "c" for index in indices)

    def operand(self, rank: int = 0) -> str:
        """A tensor of at least this rank, results that nobody reads yet first: programs hang together."""
        known = [n for n, sorts in self.sorts.items() if len(sorts) >= rank] or list(self.sorts)
        unread = [n for n in self.unread() if n in known]
        return self.one(unread) if unread and self.chance(2) else self.one(known)

    def unread(self) -> list[str]:
        read = {name for e in self.einsums for name in e.operands}
        return [e.name for e in self.einsums if e.name not in read]

    def access(self, name: str, near: Sequence[str] = (), without: Iterable[str] = ()) -> Access:
        """The tensor at different indices, taken from `near` where the sizes fit, more often than not, and none from `without`."""
        taken: list[str] = []
        for sort in self.sorts[name]:
            fits = [v for v in near if self.sort(v) == sort and v not in taken and v not in without]
            fresh = (v for v in _names(sort) if v not in {*taken, *near, *without})
            taken.append(self.one(fits) if fits and self.draw(st.integers(0, 3)) else self.one(list(islice(fresh, 3))))
        return Access(name, tuple(taken))

    def new(self, sort: str, known: Sequence[str]) -> str:
        """An index that is not there yet."""
        return next(v for v in _names(sort) if v not in known)

    # Statements

    def state(self, kept: Sequence[Index], body: Expr, op: str = "sum", rule: tuple[Rule, str] | None = None) -> str:
        """The statement `T[kept] = op(the other indices) body`, or a simpler one. Of the result, only what the rule keeps along an index is
        kept, if there is one. Returns the name of the result."""
        name = f"T{len(self.einsums)}"
        over = tuple(v for v in free_indices(body) if v not in index_names(tuple(kept)))
        body = Reduce(op, over, body) if over else body
        einsum = Einsum(name, tuple(kept), Keep(rule[0], rule[1:], body) if rule else body)
        shape = self.shape(self.sorts_of(kept))
        found = self.fair(einsum, shape)
        if found is None:
            self.replaced += 1
            source = self.one(list(self.tensors))
            access = self.access(source)
            kept = self.some(access.names)[:3]
            over = tuple(v for v in access.names if v not in kept)
            einsum = Einsum(name, tuple(kept), Reduce(self.one(("sum", "max", "min")), over, access) if over else access)
            shape = self.shape(self.sorts_of(kept))
            found = torch_oracle.evaluate_einsum(einsum, self.values, shape)
        self.sorts[name] = self.sorts_of(kept)
        self.values[name] = found.value
        self.finite &= found.span.finite
        own = math.prod(self.shape(map(self.sort, sorted(reduced(einsum.body)))))
        self.space[name] = own * math.prod(self.space.get(a.tensor, 1) for a in accesses(einsum.body))
        self.einsums.append(einsum)
        if set(index_names(einsum.indices)) - plain_names(einsum.body) or self.chance(8):
            self.declared.append(TensorType(name, shape, self.draw(formats(len(kept), coo=False)), "f64"))
        return name

    def fair(self, einsum: Einsum, shape: tuple[int, ...]) -> torch_oracle.Evaluated | None:
        """The value of a statement whose every entry is a fair test."""
        names = {*index_names(einsum.indices), *(v for a in accesses(einsum.body) for v in a.names)}
        if math.prod(self.shape(map(self.sort, sorted(names)))) > POINTS or len(einsum.indices) > 4:
            return None
        found = torch_oracle.evaluate_einsum(einsum, self.values, shape)
        values, error = found.value.values, found.value.error
        finite = values[values.isfinite()].abs()
        scale = max(1.0, float(finite.max()) if finite.numel() else 0.0)
        sure = SURE if found.value.dtype == torch.float64 else SURE_SINGLE
        if found.span.largest > TAME or bool((error > sure * scale).any()):
            return None
        return None if values.numel() and float(torch.isnan(values).double().mean()) > 0.3 else found

    @property
    def reassociates(self) -> bool:
        """Whether products may be reassociated, in one iteration space: everything is finite, and the space is not too large."""
        return self.finite and max(self.space.values(), default=1) <= SPACE

    @property
    def selects_finite(self) -> bool:
        """Whether all values that are read or computed are finite: public primitives select no others."""
        read = {name for einsum in self.einsums for name in einsum.operands if name in self.tensors}
        return self.finite and all(bool(np.isfinite(self.tensors[name].to_dense()).all()) for name in read)

    def program(self) -> Program:
        """What was drawn, with outputs: results that nobody reads, now and then not, and now and then one that is read."""
        unread = self.unread()
        outputs = tuple(e.name for e in self.einsums if (e.name in unread) != self.chance(6)) or (self.einsums[-1].name,)
        types = [TensorType(n, t.shape, t.format, dtype_name(t.dtype), t.fill) for n, t in self.tensors.items()]
        return Program((*types, *self.declared), tuple(self.einsums), outputs)


def _names(sort: str) -> Iterator[str]:
    """Indices of one size, without end."""
    yield from LETTERS[sort]
    yield from (f"{letter}{n}" for n in count(1) for letter in LETTERS[sort])


def reduced(body: Expr) -> set[str]:
    return {v for node in walk(body) if isinstance(node, Reduce) for v in node.over}
