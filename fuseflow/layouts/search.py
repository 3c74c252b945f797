"""The search for the layouts of a training step: one change after the other stays if the step is expected to take fewer cycles.

A step reads its tensors in two directions: the forward reads a matrix by rows, and the gradient behind it by columns. So the format that
suits one need not suit the other. Steps are compared as they run without fusion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np

from fuseflow.costs import TensorStatistics
from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.directed_graphs import distances
from fuseflow.einsum.nodes import Access, Apply, Einsum, Keep, Program, Reduce, TensorType, accesses, walk
from fuseflow.einsum.phases import carried_inputs
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.garbage_collection import collection_rare
from fuseflow.layouts.changes import LayoutChange, SecondCopy, StoredAs, WithoutZeros
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.plan.plan import Plan
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels import Level, parse_level

WORTHWHILE = 0.98
"""The most cycles that a step may be expected to take with a change that stays, as a share of those without it. (Steps of a pruned and of
a dense MLP and of GCNs on four graphs take 0.31 to 0.90 times the cycles without fusion, and 0.25 to 0.97 times by default. With 0.99, one
takes 1.12 times as many by default, since its adjacency matrix is read from a copy. It was not tuned on twelve recorded steps: six of
them take 0.40 to 0.86 times the cycles by default, and six do not change.)"""

ALTERNATIVE = 0.9
"""The most cycles that a step may be expected to take with another alternative than the first that stays, as a share of those with that.
(A relu of the pruned MLP by row is expected to take 0.92 times as many cycles as by column, and takes 1.37 times as many by default. One
of a GCN in 8 lanes of its nodes takes 0.77 times as many by row without fusion, and 0.73 times by default.)"""


@collection_rare()
def choose_layouts(source: Source, schedule: Schedule, machine: Machine) -> tuple[Source, tuple[LayoutChange, ...]]:
    """Return a training step with its tensors in the layouts in which it is expected to take the fewest cycles, and the changes in their
    order. Its notices say what changed, and what copies of inputs cost."""
    search, kept, tried = (
        _LayoutSearch(_unfused(schedule), RegionEstimates(Estimator(assume_unknown=True), machine)),
        list[LayoutChange](),
        set[Alternatives](),
    )
    first = best = search.priced(source)
    if first is None or best is None:
        return source, ()
    fixed = search.fixed.union(e.name for e in source.program.einsums if e.name in source.program.declared)
    constants = Constants.of(source, fixed)
    while changes := next((c for c in best.facts(constants, fixed, schedule.copies).candidates() if c not in tried), None):
        tried.add(changes)
        if (better := search.better(best, changes)) is not None:
            best, change = better
            kept.append(change)
    notices = list(search.copy_notices(best.source))
    if kept:
        gain = f"about {best.cycles:,.0f} cycles without fusion in place of {first.cycles:,.0f}"
        notices.insert(0, f"layouts of the step, {gain}: {'; '.join(map(str, kept))}")
    return replace(best.source, notices=(*source.notices, *notices)), tuple(kept)


@dataclass(frozen=True, slots=True)
class _PricedStep:
    """A step and the costs of its operators, each as a region."""

    source: Source
    costs: PartCosts

    @property
    def cycles(self) -> float:
        return sum(self.costs.alone.values())

    def facts(self, constants: Constants, fixed: frozenset[str], copies: bool) -> StepFacts:
        """Return the facts that decide how the step may be changed."""
        costs = self.costs
        types, statistics = costs.partitioned.original.declared, costs.knowledge.statistics
        return StepFacts(self.source.program, types, statistics, constants, fixed, copies, costs.state.stored)


@dataclass(slots=True)
class _LayoutSearch:
    """The facts and the memos that the steps that are compared share: most of their operators are the same."""

    schedule: Schedule
    estimates: RegionEstimates
    memo: LoweringMemo = field(default_factory=LoweringMemo)

    @property
    def fixed(self) -> frozenset[str]:
        """The tensors about which the schedule decides."""
        named = self.schedule.formats, self.schedule.blocks, self.schedule.buffers, self.schedule.preloads
        return frozenset(
            (*(name for entries in named for name, _ in entries), *self.schedule.resident, *self.schedule.drop_zeros)
        )

    def priced(self, source: Source) -> _PricedStep | None:
        """Return a step with its costs, or None if an operator cannot be lowered alone."""
        costs = prepare_costs(source, self.schedule, self.estimates, self.memo.for_other_formats())
        return None if costs is None else _PricedStep(source, costs)

    def better(self, step: _PricedStep, changes: Alternatives) -> tuple[_PricedStep, LayoutChange] | None:
        """Return a step with one of these changes, and that change, or None if it is not worth while to make any."""
        best, most = None, WORTHWHILE * step.cycles
        for change in changes:
            trial = self.priced(change.applied(step.source))
            if trial is not None and trial.cycles <= most:
                best, most = (trial, change), ALTERNATIVE * trial.cycles
        return best

    def copy_notices(self, source: Source) -> Iterator[str]:
        """Yield what each copy of an input costs, which is made once, outside of the step."""
        for copy, original in source.copies.items():
            types = source.program.declared[original], source.program.declared[copy]
            indices = tuple(f"i{d}" for d in range(len(types[0].shape)))
            copying = Program(types, (Einsum(copy, indices, Access(original, indices)),), (copy,))
            made = self.priced(replace(source, program=copying))
            cost = "" if made is None else f", which takes about {made.cycles:,.0f} cycles"
            yield f"`{copy}` is a copy of `{original}`, made once{cost}"


def _unfused(schedule: Schedule) -> Schedule:
    """Return a schedule that runs every operator alone, and says of tensors, and of lanes of an index, what this one does."""
    return replace(
        schedule,
        fuse_regions=("none",),
        regions=(),
        orders=(),
        splits=(),
        parallel=tuple((index, lanes) for index, lanes in schedule.parallel if index.isidentifier()),
        depths=(),
        plan=Plan(),
        order_policy="best" if schedule.order_policy == "auto" else schedule.order_policy,
        depth_policy="machine",
        places={},
    )


BY_COLUMN = Format.of("dense", "dense", order=(1, 0))
CSR, CSC = Format.parse("csr", 2), Format.parse("csc", 2)
Alternatives: TypeAlias = tuple[LayoutChange, ...]
COMPRESSED: Level = parse_level("compressed")
DENSE_SHARE = 0.5
"""A result that is expected to store a larger share of its entries than this may be stored dense."""


@dataclass(frozen=True)  # with a place for cached values
class StepFacts:
    """The facts about a training step that decide which changes are candidates.

        target[i, c], entries in 140 of 2,708 rows               dcsr, so that gradients behind it store 140 rows
        K[b, i] = sum(o) G[b, o] * W[o, i]                       dense in place of csr: nearly every entry is there
        D[o, i] = P[o, i] * (sum(b) G[b, o] * X[b, i])           G and X by column, as a sampled sum reads them
        D[f, h] = P[f, h] * (sum(j) X[j, f] * G[j, h])           X a constant in csr: a second copy in csc
        R[j, h] = sum(k) A[k, j] * G[k, h]                       A a constant that equals its transpose: A[j, k]
        next.W[f, h] = W[f, h] - D[f, h], D stored by column     W and next.W by column, too, so that D is not copied

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
