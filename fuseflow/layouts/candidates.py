"""Changes of layouts that may make a training step faster. Whether they do is for its costs to say.

target[i, c], entries in 140 of 2,708 rows               dcsr, so that gradients behind it store 140 rows
K[b, i] = sum(o) G[b, o] * W[o, i]                       dense in place of csr: nearly every entry is there
D[o, i] = P[o, i] * (sum(b) G[b, o] * X[b, i])           G and X by column, as a sampled sum reads them
D[f, h] = P[f, h] * (sum(j) X[j, f] * G[j, h])           X a constant in csr: a second copy in csc
R[j, h] = sum(k) A[k, j] * G[k, h]                       A a constant that equals its transpose: A[j, k]
next.W[f, h] = W[f, h] - D[f, h], D stored by column     W and next.W by column, too, so that D is not copied
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

from fuseflow.costs import TensorStatistics
from fuseflow.directed_graphs import distances
from fuseflow.einsum.nodes import Access, Apply, Einsum, Keep, Program, Reduce, TensorType, accesses, walk
from fuseflow.einsum.phases import carried_inputs
from fuseflow.layouts.changes import LayoutChange, SecondCopy, StoredAs, WithoutZeros
from fuseflow.layouts.constants import Constants
from fuseflow.tensors import Format
from fuseflow.tensors.levels import Level, parse_level

BY_COLUMN = Format.of("dense", "dense", order=(1, 0))
CSR, CSC = Format.parse("csr", 2), Format.parse("csc", 2)
Alternatives: TypeAlias = tuple[LayoutChange, ...]
COMPRESSED: Level = parse_level("compressed")
DENSE_SHARE = 0.5
"""A result that is expected to store a larger share of its entries than this may be stored dense."""


@dataclass(frozen=True)  # with a place for cached values
class StepFacts:
    """The facts about a training step that decide which changes are candidates.

    `types` has the inferred types of its tensors, and `statistics` what they are expected to store, as far as it is known. Tensors in
    `fixed` stay as they are: the user decided about them. With `copies`, inputs may be stored twice. `stored` has the types in which
    tensors are really stored without fusion: a dense level has the place of the loop that writes it.
    """

    program: Program
    types: Mapping[str, TensorType]
    statistics: Mapping[str, TensorStatistics]
    constants: Constants
    fixed: frozenset[str]
    copies: bool
    stored: Mapping[str, TensorType] = field(default_factory=dict)

    def candidates(self) -> Iterator[Alternatives]:
        """Yield the changes that may make the step faster, those first on which others depend. Of alternatives, one is made at most."""
        yield from self._compressed_rows()
        yield from self._dense_results()
        yield from self._relus()
        yield from self._columns()
        yield from self._updated()
        if self.copies:
            yield from self._second_copies()

    @cached_property
    def _intermediates(self) -> list[str]:
        """The results that may be stored otherwise: they are no outputs, and the user did not decide about them."""
        kept = {*self.program.outputs, *self.fixed}
        return [e.name for e in self.program.einsums if e.name not in kept and not isinstance(e.body, Keep)]

    def _format(self, name: str) -> Format:
        format = self.types[name].format
        assert format is not None, "every tensor has one after inference"
        return format

    def _compressed_rows(self) -> Iterator[Alternatives]:
        for name in sorted(self.constants.few_rows):
            format = self._format(name)
            if format.order == (0, 1) and format.levels[0].full:
                yield (StoredAs(((name, replace(format, levels=(COMPRESSED, *format.levels[1:]))),)),)

    def _dense_results(self) -> Iterator[Alternatives]:
        for name in self._intermediates:
            shape, statistics = self.types[name].shape, self.statistics.get(name)
            if statistics is not None and not self._format(name).all_dense and statistics.stored > DENSE_SHARE * prod(shape):
                yield (StoredAs(((name, Format.dense(len(shape))),)),)

    def _relus(self) -> Iterator[Alternatives]:
        """Yield relus without their zeros, by column, as the gradient of a weight reads them, or by row."""
        for name in self._intermediates:
            body = self.program.defined[name].body
            is_relu = isinstance(body, Apply) and body.op == "relu"
            if is_relu and len(self.types[name].shape) == 2 and self._format(name).all_dense:
                yield WithoutZeros(name, CSC), WithoutZeros(name, CSR)

    def _columns(self) -> Iterator[Alternatives]:
        """Yield what a sum with a sparse result reads by column: all operands at once, or each alone."""
        movable = {*self.constants.names, *self._intermediates}
        for einsum in self.program.einsums:
            if self._format(einsum.name).all_dense:
                continue
            names = dict.fromkeys(access.tensor for access in _sums_along(einsum, 0))
            turned = [(n, BY_COLUMN) for n in names if n in movable and self._format(n) == Format.dense(2)]
            if turned:
                yield tuple(dict.fromkeys((StoredAs(tuple(turned)), *(StoredAs((one,)) for one in turned))))

    def _updated(self) -> Iterator[Alternatives]:
        """Yield matrices that the step changes by column, all that are updated together, where a gradient of them is stored by column."""
        carried = carried_inputs(self.program)
        for together in self._pointwise_groups():
            names = [name for name in together if name in carried or name in carried.values()]
            by_column = (self.stored[n].format for n in together if n in self.program.defined and n in self.stored)
            if not names or self.fixed.intersection(names) or not any(f is not None and f.order == (1, 0) for f in by_column):
                continue
            if all(self._format(name) == Format.dense(2) for name in names):
                yield (StoredAs(tuple((name, BY_COLUMN) for name in names)),)

    def _pointwise_groups(self) -> Iterator[tuple[str, ...]]:
        """Yield the matrices that pointwise Einsums read and compute together, in the order of the program."""
        near: dict[str, dict[str, None]] = {}
        for einsum in self.program.einsums:
            matrices = [access for access in einsum.accesses if len(access.indices) == 2]
            if len(einsum.indices) != 2 or any(isinstance(node, Reduce) for node in walk(einsum.body)):
                continue
            if all(access.is_plain and access.indices == einsum.indices for access in matrices):
                for access in matrices:
                    near.setdefault(access.tensor, {})[einsum.name] = None
                    near.setdefault(einsum.name, {})[access.tensor] = None
        seen = set[str]()
        for name in near:
            if name not in seen:
                together = distances(near, name)
                seen |= together.keys()
                yield tuple(together)

    def _second_copies(self) -> Iterator[Alternatives]:
        """Yield copies of compressed constants for the Einsums that sum over their outer dimension."""
        for einsum in self.program.einsums:
            for name in einsum.operands:
                if name not in self.constants.names or len(self.types[name].shape) != 2 or self._format(name).all_dense:
                    continue
                if any(access.tensor == name for access in _sums_along(einsum, self._format(name).order[0])):
                    yield (SecondCopy(einsum.name, name),)


def _sums_along(einsum: Einsum, dimension: int) -> Iterator[Access]:
    """Yield the accesses of matrices in sums over this dimension of them, and not over the other one."""
    for node in walk(einsum.body):
        if isinstance(node, Reduce) and node.op == "sum":
            for access in accesses(node.body):
                if len(access.indices) == 2 and access.is_plain:
                    summed = [index in node.over for index in access.indices]
                    if summed[dimension] and not summed[1 - dimension]:
                        yield access
