"""What it is expected to cost to store an intermediate, and what to compute it again in each later region that reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from fuseflow.costs.live_bytes import written_bytes
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FusionError, MachineError, ScheduleError
from fuseflow.estimate.counted.memo import MOST_PIECES, CountMemo
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.partition import partition_program
from fuseflow.lower.primitive_choice import lower_for
from fuseflow.lower.state import LoweringMemo
from fuseflow.machine.machine import Machine
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.schedule.recompute import FarReaders
from fuseflow.schedule.section import split_fifo, split_lanes
from fuseflow.tensors import Tensor

MOST_PRICED = 16
"""The most intermediates whose two prices are listed: each takes an estimate of the whole program."""


@dataclass(frozen=True, slots=True)
class Price:
    """The expected cycles of a program, the bytes that it moves, and the most bytes of intermediates that are stored at a time."""

    cycles: float
    bytes: float
    live_bytes: float

    @classmethod
    def of(cls, estimate: ProgramEstimate) -> Price:
        moved = estimate.stats["bytes"]
        return cls(estimate.cycles, moved["read"] + moved["write"], estimate.live_bytes)


@dataclass(frozen=True, slots=True)
class RecomputePrice:
    """The prices of a program that stores an Einsum, and of one that computes it `again` in the later `regions` that read it. `chosen`
    says whether the schedule computes it again. A price is None if the program cannot be compiled so, for the reason `refusal`."""

    name: str
    regions: tuple[str, ...]
    chosen: bool
    stored: Price | None
    again: Price | None
    refusal: str = ""


@dataclass  # without slots: cached properties are stored in the instance
class RecomputePrices:
    """The prices of one program with one schedule, by the Einsums that are computed again. Each is estimated once."""

    program: Program
    schedule: Schedule
    machine: Machine
    tensors: Mapping[str, Tensor]
    estimator: Estimator = field(default_factory=lambda: Estimator(assume_unknown=True, memo=CountMemo(pieces=MOST_PIECES)))
    budget: Budget = field(default_factory=lambda: Budget({}))
    """What a region may occupy."""
    _memo: LoweringMemo = field(default_factory=LoweringMemo)
    _estimates: dict[frozenset[str], tuple[Schedule, ProgramEstimate] | str] = field(default_factory=dict)

    def estimate(self, again: Iterable[str]) -> ProgramEstimate | str:
        """Return the estimate of the program if these Einsums are computed again, or why it cannot be compiled so."""
        outcome = self._outcome(frozenset(again))
        return outcome if isinstance(outcome, str) else outcome[1]

    def scheduled(self, again: Iterable[str]) -> Schedule:
        """Return the schedule that computes these Einsums again, without entries about regions that do not run then, and within the
        budget: a region that exceeds it has fewer lanes than before."""
        outcome = self._outcome(frozenset(again))
        return self.schedule if isinstance(outcome, str) else outcome[0]

    def _outcome(self, names: frozenset[str]) -> tuple[Schedule, ProgramEstimate] | str:
        if names not in self._estimates:
            try:
                self._estimates[names] = self._fitting(self._without_idle(names))
            except (FusionError, MachineError, ScheduleError) as error:
                self._estimates[names] = error.message
        return self._estimates[names]

    def _fitting(self, schedule: Schedule) -> tuple[Schedule, ProgramEstimate] | str:
        """Return a schedule and its estimate, with lanes halved in regions as long as these exceed the budget."""
        while True:
            partitioned, lowered = lower_for(self.program, schedule, self.machine, self.tensors, self._memo)
            regions = tuple(estimator_regions(lowered))
            estimate = self.estimator.estimate(regions, partitioned.program, self.tensors, self.machine)
            over = {name for region in estimate.regions if self.budget.exceeded(region.resources) for name in region.names}
            if not over:
                return schedule, estimate
            lanes = {name: count for name, count in schedule.parallel if split_lanes(name)[0] in over and count > 1}
            if not lanes:
                return f"region `{min(over)}` exceeds {self.budget}"
            widest = max(lanes, key=lambda name: (lanes[name], name))
            schedule = schedule.par(**{widest: lanes[widest] // 2})

    def _without_idle(self, names: frozenset[str]) -> Schedule:
        schedule = replace(self.schedule, recomputed=tuple(sorted(names)))
        results = partition_program(self.program, schedule).results
        idle = {name for name, written in results.items() if not written}
        return replace(
            schedule,
            orders=tuple(entry for entry in schedule.orders if entry[0] not in idle),
            parallel=tuple(entry for entry in schedule.parallel if split_lanes(entry[0])[0] not in idle),
            depths=tuple(entry for entry in schedule.depths if split_fifo(entry[0])[0] not in idle),
        )

    def price(self, again: Iterable[str]) -> Price | None:
        """Return the price of the program if these Einsums are computed again. None if it cannot be compiled so."""
        estimate = self.estimate(again)
        return None if isinstance(estimate, str) else Price.of(estimate)

    @cached_property
    def candidates(self) -> dict[str, tuple[str, ...]]:
        """The Einsums that can be computed again, by the user's names, with the later regions that read each."""
        partitioned = partition_program(self.program, replace(self.schedule, recomputed=()))
        readers, names = FarReaders.of(partitioned.program, partitioned.regions), partitioned.user_names
        return {
            names.get(name, name): tuple(dict.fromkeys(readers.home[reader.name] for reader in readers.readers[name]))
            for name in readers.candidates()
        }

    @cached_property
    def chosen(self) -> frozenset[str]:
        """The Einsums that the schedule computes again, by the user's names."""
        if not self.schedule.recomputed:
            return frozenset()
        partitioned = partition_program(self.program, self.schedule)
        repeated = {partitioned.user_names.get(name, name) for name in partitioned.copies.values()}
        return frozenset(repeated.intersection(self.candidates))

    def largest(self, names: Iterable[str]) -> list[str]:
        """Return up to `MOST_PRICED` of these Einsums: those of which the program writes the most bytes."""
        now = self.estimate(self.chosen)
        written = {} if isinstance(now, str) else written_bytes(now.stats)
        return sorted(names, key=lambda name: (-written.get(name, 0.0), name))[:MOST_PRICED]

    def listed(self) -> tuple[tuple[RecomputePrice, ...], int]:
        """Return both prices of each Einsum that is computed again, and of those of the other candidates that write the most bytes. The
        number counts the candidates that are left out."""
        shown = {*self.chosen, *self.largest(self.candidates.keys() - self.chosen)}
        prices = tuple(self._listed(name, regions) for name, regions in self.candidates.items() if name in shown)
        return prices, len(self.candidates) - len(shown)

    def _listed(self, name: str, regions: tuple[str, ...]) -> RecomputePrice:
        chosen = self.chosen
        stored, again = chosen - {name}, chosen | {name}
        refusals = (outcome for each in (stored, again) if isinstance(outcome := self.estimate(each), str))
        return RecomputePrice(name, regions, name in chosen, self.price(stored), self.price(again), next(refusals, ""))

    def of_fewest_cycles(self) -> tuple[str, ...]:
        """Return the Einsums that are computed again in the program with the fewest expected cycles. Beside those that the schedule
        computes again, Einsums are tried that another cut between the same Einsums could not move to the region that reads them. Those
        that write the most bytes come first, and each is computed again if that takes fewer cycles."""
        chosen, fewest = self.chosen, self._cycles(self.chosen)
        for name in self.largest(self._beyond_cuts() - chosen):
            cycles = self._cycles(chosen | {name})
            if cycles < fewest:
                chosen, fewest = chosen | {name}, cycles
        return tuple(sorted(chosen))

    def within(self, live: float) -> tuple[str, ...] | None:
        """Return Einsums that are computed again in a program with at most `live` bytes of intermediates at a time, None if there are
        none. One after the other is added: the one with which the fewest bytes are live, and among those that fit, the one with the
        fewest expected cycles."""
        chosen, price = self.chosen, self.price(self.chosen)
        while price is not None and price.live_bytes > live:
            others = self.largest(self.candidates.keys() - chosen)
            prices = {name: lower for name in others if (lower := self.price(chosen | {name})) is not None}
            name = min(prices, key=lambda one: (max(prices[one].live_bytes, live), prices[one].cycles), default=None)
            if name is None or prices[name].live_bytes > price.live_bytes:
                return None
            chosen, price = chosen | {name}, prices[name]
        return None if price is None else tuple(sorted(chosen))

    def _cycles(self, again: frozenset[str]) -> float:
        price = self.price(again)
        return math.inf if price is None else price.cycles

    def _beyond_cuts(self) -> set[str]:
        """Return the candidates that do not end a region whose next region is the only one to read them."""
        partitioned = partition_program(self.program, replace(self.schedule, recomputed=()))
        ends = {region.einsums[-1]: following.name for region, following in pairwise(partitioned.regions)}
        own = {name: partitioned.reshapes.statement(name) for name in self.candidates}
        home = {name: region.name for region in partitioned.regions for name in region.einsums}
        read_at_home = {n for e in partitioned.program.einsums for n in e.operands if home.get(e.name) == home.get(n)}
        movable = {n for n, its in own.items() if self.candidates[n] == (ends.get(its),) and its not in read_at_home}
        return self.candidates.keys() - movable
