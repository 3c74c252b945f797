"""The search for the layouts of a training step: one change after the other stays if the step is expected to take fewer cycles.

A step reads its tensors in two directions: the forward reads a matrix by rows, and the gradient behind it by columns. So the format that
suits one need not suit the other. Steps are compared as they run without fusion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fuseflow.cut.costs import PartCosts, RegionEstimates, prepare_costs
from fuseflow.einsum.nodes import Access, Einsum, Program
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.garbage_collection import collection_rare
from fuseflow.layouts.candidates import Alternatives, StepFacts
from fuseflow.layouts.changes import LayoutChange
from fuseflow.layouts.constants import Constants
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.plan.plan import Plan
from fuseflow.schedule import Schedule

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
        memo = self.memo.for_other_formats()
        costs = prepare_costs(source.program, self.schedule, source.tensors, self.estimates, memo)
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
