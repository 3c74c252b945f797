"""The simulations after a search: its best programs, others that these runs make promising, and changes of the regions of the
fastest one, whose fastest regions are put together.

Regions run one after the other. So the cycles of a program are the sum of the cycles of its regions, and one run tests one
decision about each. For example, two simulations of a program of three regions tell which of two decisions is faster in each.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from fuseflow.array.placed_region import PlacedRegion
from fuseflow.autoscheduler.budget.buffers import MOST_PLACES, BufferVariants, ScratchpadCandidates
from fuseflow.autoscheduler.budget.costs import RegionCost
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange
from fuseflow.autoscheduler.budget.decision import RegionDecision
from fuseflow.autoscheduler.budget.path_search import ALL_LEVERS, UNFUSED, BudgetSearch, DealtPath, Levers
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.region_tuning import (
    RegionChange,
    RegionTransfer,
    fastest_regions,
    region_contents,
    region_depths,
    rounds,
    row_runs,
    saved_cycles,
)
from fuseflow.autoscheduler.budget.request import BudgetRequest, Deadline
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trials import NOT_PLACED, Trial, TrialEstimates, TrialSimulations, best_trial
from fuseflow.autoscheduler.search_defaults import PLACES, SPLITS
from fuseflow.errors import ArrayError, FuseFlowError
from fuseflow.resources.budget import Budget
from fuseflow.run.placed import RegionPlacing
from fuseflow.run.result import loading_after
from fuseflow.schedule import Schedule
from fuseflow.schedule.section import split_lanes


@dataclass(frozen=True, slots=True)
class RangeDecision:
    """A range in an order (`edge`), with a decision about it and its expected cost."""

    edge: OrderedRange
    decision: RegionDecision
    cost: RegionCost


@dataclass(slots=True)
class Refinement:
    """A program that was simulated, and other decisions about its regions, those that are expected to be fastest first.

    The expected costs of the decisions stay as they were before they were simulated.
    """

    program: DealtPath
    costs: RangeCosts
    budget: Budget
    levers: Levers
    _choices: dict[int, list[RangeDecision]] = field(default_factory=dict)

    def widen(self, taken: Mapping[str, int], trying: Callable[[OrderedRange], bool]) -> None:
        """Choose lanes of the regions in their other orders, where these are expected to take fewer cycles than the region has
        `taken` in the run. `trying` is called with each, and returns whether there is time for it.

        A search has all orders only for the program that it expects to be the fastest. In the simulator another one may be.
        """
        for edge, _ in self.program.decisions if self.levers.orders else ():
            self.program.variant.graph.widen(edge)
            for other in self._alike(edge):
                if self.costs.known(other, self.budget, self.levers.freedom):
                    continue
                if self.costs.expected(other, self.budget, self.levers.freedom) < taken.get(edge.name, 0) and trying(other):
                    self.costs.best(other, self.budget, self.levers.freedom)

    def others(self, number: int) -> Iterator[DealtPath]:
        """Yield at most `number` programs. Each has a new decision about every region for which there is one."""
        choices = [self._others(edge, decision) for edge, decision in self.program.decisions]
        for place in range(min(number, max(map(len, choices), default=0))):
            yield self._with([of_region[place] if place < len(of_region) else None for of_region in choices])

    def dealt_otherwise(self, taken: Mapping[str, int]) -> DealtPath:
        """Return the program with each region dealt over another index than before, if there is one with which fewer cycles were
        expected than the region has `taken` in the run."""
        chosen = []
        for edge, decision in self.program.decisions:
            dealt = {loop for loop, _ in decision.lanes}
            of_one_index = (o for o in self._others(edge, decision) if len(o.decision.lanes) == 1 and not o.decision.has_stages)
            others = (o for o in of_one_index if {loop for loop, _ in o.decision.lanes} != dealt)
            chosen.append(next((o for o in others if o.cost.cycles < taken.get(edge.name, 0)), None))
        return self._with(chosen)

    def _with(self, chosen: Sequence[RangeDecision | None]) -> DealtPath:
        """Return the program with these decisions about its regions, in order. None leaves a region as it was."""
        decisions = zip(self.program.decisions, chosen, strict=True)
        return replace(self.program, decisions=tuple(own if one is None else (one.edge, one.decision) for own, one in decisions))

    def _others(self, edge: OrderedRange, decision: RegionDecision) -> list[RangeDecision]:
        """Return the decisions about a range except `decision`, with other lanes or in other orders, the fastest first."""
        if id(edge) not in self._choices:
            best: dict[RegionDecision, RangeDecision] = {}
            for other in self._alike(edge):
                for known, cost in self.costs.fitting(other, self.budget, self.levers.freedom):
                    lanes = replace(known, depth=None)
                    if lanes not in best or cost.cycles < best[lanes].cost.cycles:
                        best[lanes] = RangeDecision(other, known, cost)
            ranked = sorted(
                best.values(), key=lambda one: (one.cost.cycles, one.edge.rank, one.decision.width, one.decision.lanes)
            )
            # Loops over the values of one vector may stand anywhere, and the graph is the same.
            unlike = {(one.decision.lanes, one.cost): one for one in reversed(ranked)}
            self._choices[id(edge)] = [
                one
                for one in reversed(unlike.values())
                if one.cost.cycles <= SETTINGS.slower * ranked[0].cost.cycles and (one.edge, one.decision) != (edge, decision)
            ]
        return self._choices[id(edge)]

    def _alike(self, edge: OrderedRange) -> list[OrderedRange]:
        """Return the edges, in all allowed orders, of the same range that lead to the same state as this one."""
        edges = self.program.variant.graph.edges(edge.before, fused=not edge.is_single)
        return [other for other in edges if other.part == edge.part and other.after is edge.after and self.levers.allow(other)]


@dataclass(frozen=True, slots=True)
class TrialRuns:
    """Makes the simulations after a search, as many as a request asks for."""

    request: BudgetRequest
    search: BudgetSearch
    simulations: TrialSimulations
    buffers: BufferVariants

    @property
    def estimates(self) -> TrialEstimates:
        return self.simulations.estimates

    @property
    def budget(self) -> Budget:
        return self.estimates.budget

    @property
    def deadline(self) -> Deadline:
        return self.search.deadline

    def confirmed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials, with simulations of the best and of the unfused program, and of the next ones if these are refused."""
        if not self.request.top:
            return list(trials)
        done: list[Trial] = []
        waiting = [trial for trial in trials if not trial.refused]
        while waiting and not self.deadline.passed and not any(t.cycles is not None and not t.refused for t in done):
            first = waiting[: self.request.top]
            first += [trial for trial in waiting[self.request.top :] if trial.is_unfused]
            done += self.simulations.of_programs(first)
            waiting = [trial for trial in waiting if trial not in first]
        for is_unfused, levers in ((True, UNFUSED), (False, ALL_LEVERS)):
            alike = [trial for trial in done if trial.is_unfused == is_unfused]
            alike += self._searched_again(alike, levers)
            best = best_trial(alike)
            if best is not None:
                refinement = Refinement(self.estimates.program(best), self.search.costs, self.budget, levers)
                alike += self._with_changes(alike, refinement)
            done += [trial for trial in alike if trial not in done]
        return [*done, *waiting, *(trial for trial in trials if trial.refused)]

    def _searched_again(self, done: Sequence[Trial], levers: Levers) -> list[Trial]:
        """Return simulations of further programs, until one ran within the budget and no other one is expected to be faster. Each
        is the cheapest by the depths of FIFOs and the cycles of regions in the runs before it. Beside refused ones, as many are
        simulated as the request says."""
        more: list[Trial] = []
        last, left = next(iter(done), None), self.request.top - 1
        while (
            last is not None and (last.refused or left > 0) and len(more) < SETTINGS.searches_again and not self.deadline.passed
        ):
            programs = self.search.cheapest(self.budget, 1, levers).programs
            program = next(iter(programs), None)
            fastest = min((t.cycles for t in (*done, *more) if t.cycles is not None and not t.refused), default=inf)
            known = {trial.schedule for trial in (*done, *more)}
            if program is None or program.schedule in known or not (last.refused or program.cycles < SETTINGS.faster * fastest):
                break
            trial = self.estimates.of_program(program, levers == UNFUSED)
            if trial.refused:
                break
            (last,) = self.simulations.of_programs([trial])
            left -= not last.refused
            more.append(last)
        return more

    def _with_changes(self, done: Sequence[Trial], refinement: Refinement) -> list[Trial]:
        """Return new simulations of the best of the trials `done`, with changes of its regions, one kind of changes after the
        other: other lanes and orders, runs of rows, and deeper FIFOs."""
        tried = [*done]
        tried += self._refined(tried, refinement)
        tried += self._put_together(tried)
        lean = self._without_idle_preloads(tried)
        tried += [*lean, *self._in_runs(tried, refinement), *self._in_runs(lean, refinement)]
        tried += self._put_together(tried)
        tried += self._without_idle_preloads(tried)
        tried += self._deeper(tried)
        tried += self._put_together(tried)
        tried += self._placed(tried)
        return tried[len(done) :]

    def _refined(self, done: Sequence[Trial], refinement: Refinement) -> list[Trial]:
        """Return the simulations of the best of some trials with other decisions about its regions: as many as the request asks for, and
        more as long as the last one made regions so much faster that it is worth while."""
        first = best_trial(done)
        if first is None or self.request.top == 1 or self.deadline.passed:
            return []

        def trying(edge: OrderedRange) -> bool:
            self.simulations.agenda.trying(f"{edge.name}: {', '.join(edge.order)}")
            return not self.deadline.passed

        refinement.widen(first.taken, trying)
        programs = refinement.others(SETTINGS.most_refined)
        others = (self.estimates.of_program(program, first.is_unfused) for program in programs)
        waiting = (trial for trial in others if not trial.refused)
        tried = self.simulations.of_programs(list(islice(waiting, self.request.top - 1)))
        while self._are_worthwhile(first, tried) and (trial := next(waiting, None)) is not None:
            tried += self.simulations.of_programs([trial])
        return tried

    def _are_worthwhile(self, first: Trial, tried: Sequence[Trial]) -> bool:
        """Return whether the last of the trials `tried` made regions so much faster that there is reason to try others, and time."""
        if not tried or self.deadline.passed:
            return False
        return saved_cycles(tried[-1], (first, *tried[:-1])) >= (1 - SETTINGS.gain) * (first.cycles or 0)

    def _put_together(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulation of the best trial with each region as it was fastest in any of `done`, if that schedule is new."""
        best = best_trial(done)
        if best is None or self.deadline.passed:
            return []
        contents = region_contents(self.estimates.compiled(best.schedule))
        transfers = fastest_regions(best, done, contents, self.budget.limits.get("fifo", inf))
        return self._with(best, tuple(transfers), "the fastest of each region", {trial.schedule for trial in done})

    def _without_idle_preloads(self, done: Sequence[Trial]) -> list[Trial]:
        """Return the simulation of the best trial without preloads that save nothing in its lanes, if it has any."""
        first = best_trial(done)
        if "preloads" not in self.request.allow or first is None or self.deadline.passed:
            return []
        schedule = self.buffers.preloads_of_use(first.schedule)
        if schedule in {trial.schedule for trial in done}:
            return []
        return [self.simulations.of_change(first, schedule, "fewer preloads")]

    def _in_runs(self, done: Sequence[Trial], refinement: Refinement) -> list[Trial]:
        """Return simulations of the best trial in `done` with lanes that take runs of neighbouring rows, if splits are allowed:
        lanes of the indices that it deals, and of other indices that are expected to be faster."""
        first = best_trial(done)
        if first is None or SPLITS not in self.request.allow or self.deadline.passed:
            return []
        own = tuple(row_runs(self.estimates.compiled(first.schedule)))
        tried = self._changed(first, own, "lanes in runs")
        return tried + self._changed(first, tuple(self._other_runs(first, refinement)), "other lanes in runs")

    def _other_runs(self, first: Trial, refinement: Refinement) -> Iterator[tuple[RegionTransfer, ...]]:
        """Yield, for each region that is expected to be faster in lanes of another index, changes to these lanes with runs of rows."""
        dealt, lanes = refinement.dealt_otherwise(first.taken).schedule, dict(first.schedule.parallel)
        others = {split_lanes(name)[0] for name, count in dealt.parallel if name not in lanes}
        contents = region_contents(self.estimates.compiled(first.schedule))
        schedule = first.schedule
        for region in sorted(others):
            schedule = RegionTransfer(region, contents[region], dealt).added(schedule)
        runs = row_runs(self.estimates.compiled(schedule)) if others else ()
        for options in runs:
            yield tuple(RegionTransfer(o.region, contents[o.region], o.added(schedule)) for o in options if o.region in others)

    def _placed(self, done: Sequence[Trial]) -> list[Trial]:
        """Return simulations of the best trial in `done` with tensors in the scratchpad, whole and in tiles, if places are allowed."""
        first = best_trial(done)
        if first is None or PLACES not in self.request.allow or self.deadline.passed:
            return []
        compiled = self.estimates.compiled(first.schedule)
        estimate = compiled.estimate(self.estimates.estimator)
        tensors, tried = ScratchpadCandidates.of(compiled, estimate, self.budget.limits.get("buffer", inf)), list[Trial]()
        for how, schedule in islice(tensors.options(), MOST_PLACES):
            try:
                self.estimates.compiled(schedule)
            except FuseFlowError:
                continue
            tried.append(self.simulations.of_change(first, schedule, how))
        return tried

    def _deeper(self, done: Sequence[Trial]) -> list[Trial]:
        """Return simulations of the best trial in `done` with FIFOs as deep as the budget allows."""
        first = best_trial(done)
        if first is None or self.deadline.passed:
            return []
        depths = tuple(region_depths(self.estimates, first.schedule))
        return self._changed(first, depths, "deeper FIFOs")

    def _changed(self, first: Trial, options: Sequence[tuple[RegionChange, ...]], how: str) -> list[Trial]:
        """Return simulations of a trial, each with one of the `options` of every region that has one left."""
        return [trial for changes in rounds(options) for trial in self._with(first, changes, how, {first.schedule})]

    def _with(self, first: Trial, changes: Sequence[RegionChange], how: str, known: Container[Schedule]) -> list[Trial]:
        """Return the simulation of a trial with all changes with which it compiles; empty if that schedule is in `known`."""
        schedule = first.schedule
        for each in changes:
            try:
                self.estimates.compiled(each.added(schedule))
            except FuseFlowError:
                continue
            schedule = each.added(schedule)
        return [self.simulations.of_change(first, schedule, how)] if schedule not in known else []


def most_changes(request: BudgetRequest, ranges: int) -> int:
    """Return how many lanes of other orders, and simulations, are tried at most for a program of `ranges` ranges."""
    lanes = ranges * SETTINGS.max_orders if request.top > 1 else 0
    fewer_preloads = "preloads" in request.allow
    runs = 2 * SETTINGS.change_rounds * (1 + fewer_preloads) if SPLITS in request.allow else 0
    placed = 2 * MOST_PLACES if PLACES in request.allow else 0  # also of the unfused program
    return lanes + request.top - 1 + runs + placed + SETTINGS.change_rounds + 2 * fewer_preloads + SETTINGS.times_put_together


@dataclass(frozen=True, slots=True)
class TrialPlacing:
    """Places trials that were not simulated. The search counts tiles alone, which is the least that loading takes: how many hops the links
    of a region have is known once it is placed."""

    placing: RegionPlacing
    estimates: TrialEstimates

    def confirmed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials, with the best and the unfused one of them placed: refused if that fails, else estimated with their links.
        Placing ends once no other trial takes fewer cycles than one that is placed."""
        done, waiting, best = list[Trial](), sorted(trials, key=lambda trial: trial.rank), None
        while waiting and not waiting[0].refused and (best is None or waiting[0].rank < best.rank):
            trial = self.placed(waiting.pop(0))
            done.append(trial)
            if not trial.refused and (best is None or trial.rank < best.rank):
                best = trial
        return [*done, *(self.placed(trial) if trial.is_unfused and not trial.refused else trial for trial in waiting)]

    def placed(self, trial: Trial) -> Trial:
        """Return a trial that was placed on the array."""
        if trial.cycles is not None:
            return trial
        compiled = self.estimates.compiled(trial.schedule)
        try:
            linked = self.placing.linked(compiled)
        except ArrayError as error:
            return replace(trial, refused=f"{NOT_PLACED} {error.message}")
        estimate = linked.estimate(self.estimates.estimator)
        cycles = {name: float(region.bound.cycles) for region in estimate.regions for name in region.names}
        loading = loading_after(linked.loading, cycles)
        return replace(trial, loading=loading, estimate=estimate.cycles + sum(loading.values()))

    def regions(self, schedule: Schedule) -> Mapping[str, PlacedRegion]:
        """Return the placed regions of a schedule, by name. Raises `ArrayError` if one cannot be placed and routed."""
        graphs = {region.name: region.graph for region in self.estimates.compiled(schedule).regions}
        return dict(zip(graphs, self.placing.in_order(graphs.values()), strict=True))
