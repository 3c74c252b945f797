"""The choice of a whole schedule within a budget: candidates are searched by estimate, and the best are simulated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from fuseflow.array.capacity import tile_use
from fuseflow.autoscheduler.array_candidates import LARGER_ARRAY, candidate_placing
from fuseflow.autoscheduler.budget.buffers import BufferVariants
from fuseflow.autoscheduler.budget.costs import LoweredCosts
from fuseflow.autoscheduler.budget.cut_graph import OrderedRange, total_lane_cycles
from fuseflow.autoscheduler.budget.path_search import (
    ALL_LEVERS,
    NO_LEVERS,
    UNFUSED,
    BudgetSearch,
    DealtPath,
    Effort,
    SearchOutcome,
    Variant,
)
from fuseflow.autoscheduler.budget.program_variants import VariantFactory, VariantSearch
from fuseflow.autoscheduler.budget.range_costs import RangeCosts
from fuseflow.autoscheduler.budget.request import Agenda, BudgetRequest, Deadline, SearchProgress, refuse_decided
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.autoscheduler.budget.trial_runs import TrialPlacing, TrialRuns, most_changes
from fuseflow.autoscheduler.budget.trials import (
    BudgetChoice,
    Lever,
    ParetoPoint,
    RunSchedules,
    SimulateHere,
    Trial,
    TrialEstimates,
    TrialSimulations,
    undominated,
)
from fuseflow.autoscheduler.search_defaults import LEVERS, PLACES, SPLITS
from fuseflow.autoscheduler.simulation_cache import CandidateRuns
from fuseflow.compiler import compile_source
from fuseflow.cp_sat import require_or_tools
from fuseflow.cut.recompute_prices import RecomputePrices
from fuseflow.errors import ArrayError, FuseFlowError, UsageError
from fuseflow.estimate.counted.memo import CountMemo
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.frontend.imported_program import Source
from fuseflow.layouts.kept_layouts import with_layouts
from fuseflow.lower.partition import with_exact_formats
from fuseflow.machine.machine import Machine
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget, amount_text
from fuseflow.schedule import Schedule

PARETO_START: Mapping[str, int] = {"mul": 1024, "add": 4096, "special": 1024, "port": 4096, "stream": 16_384}
"""The limit at which the curve of a resource begins if the budget does not limit it; bytes begin with 16 MB."""


def budget_schedule(
    source: Source,
    schedule: Schedule,
    machine: Machine,
    request: BudgetRequest,
    *,
    run: RunSchedules | None = None,
    progress: SearchProgress = lambda text, left: None,
) -> BudgetChoice:
    """Choose regions, loop orders, lanes and, if they are allowed, formats of a loaded program, within a budget.

    The entries of the schedule hold for every candidate: formats, blocks, settings of lowering. `run` simulates schedules;
    without it they are simulated in this process. `progress` gets each candidate, and how many may follow. Raises `ScheduleError`
    for a schedule that states what is to be chosen, and `UsageError` if nothing fits the budget, and without data or OR-Tools.
    """
    require_or_tools()
    refuse_decided(schedule)
    schedule, notices = with_exact_formats(source.program, schedule)
    source = replace(source, notices=(*source.notices, *notices))
    source = with_layouts(source, schedule, machine)
    missing = [t.name for t in source.program.inputs if t.name not in source.tensors]
    if missing:
        raise UsageError(f"input `{missing[0]}` of `{source.name}` has no data", hint="pass `--tensors FILE.yaml`")
    runs = CandidateRuns(placing=candidate_placing(request.array, machine))
    run = run or SimulateHere(source, machine, runs)
    base = replace(schedule, fuse_regions=("none",), order_policy="best")
    estimator = Estimator(assume_unknown=True, memo=CountMemo(SETTINGS.search_count_budget), array=request.array)
    deadline = Deadline.after(request.limit)
    factory = VariantFactory(source, machine, estimator, base, deadline)
    published = factory(base)
    if published is None:
        compile_source(source, base, machine)  # which raises the error of an operator that cannot run alone
        raise UsageError(
            f"`{source.name}` has too many operators to search", hint="schedule a part of it, or choose by `--fuse auto`"
        )
    return _Chooser(request, run, Agenda(progress), factory, published, runs).choose()


@dataclass(slots=True)
class _Chooser:
    """The steps from a request to a choice. `published` is the program with the formats of the user."""

    request: BudgetRequest
    run: RunSchedules
    agenda: Agenda
    factory: VariantFactory
    published: Variant
    runs: CandidateRuns
    search: BudgetSearch = field(init=False)
    budget: Budget = field(init=False)
    buffers: BufferVariants = field(init=False)
    estimates: TrialEstimates = field(init=False)
    placing: TrialPlacing | None = field(init=False)
    simulations: TrialSimulations = field(init=False)

    def __post_init__(self) -> None:
        self.budget = self.request.whole_budget
        source, machine, estimator = self.factory.source, self.factory.machine, self.factory.estimator
        costs = RangeCosts(LoweredCosts(machine, estimator), self.request.tried)
        self.search = BudgetSearch((self.published,), costs, self.deadline, self.agenda.trying)
        self.buffers = BufferVariants(self.factory, self.published, self.budget)
        self.estimates = TrialEstimates(source, machine, self.budget, estimator)
        self.placing = None if self.runs.placing is None else TrialPlacing(self.runs.placing, self.estimates)
        self.simulations = TrialSimulations(self.estimates, costs, self.run, self.deadline, self.agenda)

    @property
    def deadline(self) -> Deadline:
        return self.factory.deadline

    def choose(self) -> BudgetChoice:
        """Search, simulate the best programs, and estimate how many cycles the program takes without each lever."""
        variants = VariantSearch(self.factory, self.published, self.request.allow, self._quick, self.agenda.trying)
        self._plan(variants)
        with self.agenda.step("unfused"):
            unfused = self._unfused()
        with self.agenda.step("variants"):
            self.search.variants = variants.best() if self._changes_variants else (self.published,)
        with self.agenda.step("best"):
            best = self.search.cheapest(self.budget, self._kept)
        with self.agenda.step("apart"):
            best = self._apart(best)
        if self._changes_buffers:
            with self.agenda.step("buffers"):
                best = self._with_turned_inputs(self._with_buffers(best), variants)
        if not best.programs and not unfused.programs:
            raise self._no_room()
        with self.agenda.step("simulations"):
            expected = [self.estimates.of_program(program, True) for program in unfused.programs]
            expected += [self.estimates.of_program(program, False) for program in best.programs]
            of_schedules = {trial.schedule: trial for trial in reversed(expected)}
            runs = TrialRuns(self.request, self.search, self.simulations, self.buffers)
            trials = runs.confirmed(sorted(of_schedules.values(), key=lambda trial: trial.rank))
            trials += self._recomputing(trials)
        trials = trials if self.placing is None else self.placing.confirmed(trials)
        chosen = min(trials, key=lambda trial: trial.rank)
        if chosen.refused:
            raise UsageError(
                f"no schedule of `{self.factory.source.name}` runs within {self.budget}: {chosen.refused}", hint="a larger budget"
            )
        self.search.costs.forget_cycles()
        with self.agenda.step("levers"):
            levers = tuple(self._levers())
        with self.agenda.step("curves"):
            curves = tuple(point for component in self.request.pareto for point in self._pareto(component))
        compiled = self.estimates.compiled(chosen.schedule)
        estimate = compiled.estimate(self.factory.estimator)
        slowest = max(estimate.regions, key=lambda region: region.times * region.bound.cycles)
        return BudgetChoice(
            compiled,
            self.budget,
            tuple(replace(trial, chosen=trial is chosen) for trial in sorted(trials, key=lambda trial: trial.rank)),
            min(self.estimates.expected[trial.schedule] for trial in trials if not trial.refused),
            min(best.bound, chosen.estimate),
            best.relaxed,
            self._busy(estimate, float(chosen.cycles or chosen.estimate)),
            slowest,
            float(slowest.times * slowest.bound.cycles / max(estimate.cycles, 1)),
            levers,
            curves,
            len(self.published.graph.ranges.units),
            self.published.graph.ranges.units.granularity,
            sum(variant.graph.edge_count for variant in self.search.variants),
            self.search.costs.decisions.evaluated,
            self.deadline.passed and not (best.is_complete and unfused.is_complete),
            {} if self.placing is None else self.placing.regions(chosen.schedule),
            cache=self.runs.cache,
        )

    @property
    def _changes_variants(self) -> bool:
        """Whether formats or products may be changed."""
        return bool(self.request.allow - {"buffers", "preloads", SPLITS, PLACES})

    @property
    def _changes_buffers(self) -> bool:
        """Whether reuse buffers or preloads may be chosen."""
        return bool(self.request.allow & {"buffers", "preloads"})

    @property
    def _kept(self) -> int:
        """How many programs the search is to find."""
        return 2 * max(1, self.request.top)

    def _recomputing(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return trials that compute intermediates again, so that they keep no more bytes of them alive than the budget has, of the
        trials that keep more and are best otherwise."""
        source, machine, live = self.factory.source, self.factory.machine, self.budget.live
        over = [t for t in trials if live is not None and t.live_bytes > live and not self.budget.exceeded(t.resources)]
        repeating: list[Trial] = []
        for trial in sorted(over, key=lambda trial: (trial.estimate, trial.schedule.to_yaml()))[: self._kept]:
            if live is None or self.deadline.passed:
                break
            estimator = self.factory.estimator
            prices = RecomputePrices(source.program, trial.schedule, machine, source.tensors, estimator, self.budget)
            again = prices.within(live)
            if again is not None:
                changed = self._changed(trial, prices.scheduled(again), f"again {', '.join(again)}")
                repeating.append(replace(changed, is_unfused=False))
        return repeating

    def _changed(self, trial: Trial, schedule: Schedule, change: str) -> Trial:
        """Return the trial of a schedule that changes another trial in a way that the search does not know, simulated if the request
        asks for simulations."""
        if self.request.top:
            return self.simulations.of_change(trial, schedule, change)
        return self.estimates.of_schedule(f"{trial.name}, {change}", self.estimates.program(trial), schedule, trial.is_unfused)

    def _plan(self, variants: VariantSearch) -> None:
        """Enter into the agenda how many candidates each step tries at most."""
        ranges, top = self.search.most_ranges(), self.request.top
        self.agenda.expect("unfused", ranges)
        self.agenda.expect("variants", variants.most() if self._changes_variants else 0)
        self.agenda.expect("best", ranges)
        self.agenda.expect("apart", ranges)
        self.agenda.expect("buffers", ranges if self._changes_buffers else 0)
        again = 2 * SETTINGS.searches_again * (ranges + 1) if {"fifo", "area"} & self.budget.limits.keys() else 0
        changes = most_changes(self.request, len(self.published.graph.ranges.units))
        self.agenda.expect("simulations", self._kept + 1 + again + 2 * changes if top else 0)
        self.agenda.expect("levers", len(self._levers_to_leave) * self.search.most_ranges(Effort(SETTINGS.lever_ranges)))
        points = sum(self._curve_start(component).bit_length() for component in self.request.pareto)
        self.agenda.expect("curves", points * (ranges + min(top, 1)))

    def _unfused(self) -> SearchOutcome:
        """Return the unfused program in the formats of the user. If there is no time to search for its lanes, it has one lane."""
        search = replace(self.search, variants=(self.factory.apart(self.published),))
        unfused = search.cheapest(self.budget, 1, UNFUSED)
        if unfused.programs or unfused.is_complete:
            return unfused
        return replace(replace(search, deadline=Deadline()).cheapest(self.budget, 1, NO_LEVERS), is_complete=False)

    def _apart(self, best: SearchOutcome) -> SearchOutcome:
        """Return the cheapest programs if the regions between which the program was cut may be taken apart, too: lanes help some of their
        operators more than others."""
        finer = tuple(map(self.factory.apart, self.search.variants))
        if finer == self.search.variants:
            return best
        self.search.variants = finer
        cheapest = self.search.cheapest(self.budget, self._kept)
        return min(cheapest, best, key=lambda outcome: outcome.programs[0].cycles if outcome.programs else inf)

    def _with_buffers(self, best: SearchOutcome) -> SearchOutcome:
        """Return the cheapest programs if tensors may have reuse buffers or preloads, too. First come the ones that leave the
        memory least to do, so that more lanes are of use. Then buffers become no larger than is of use beside these lanes."""
        variants = self.buffers
        has_buffers, has_preloads = "buffers" in self.request.allow, "preloads" in self.request.allow
        first = (variants.of_least_traffic,) * has_buffers + (variants.of_preloads,) * has_preloads
        for steps in (first, (variants.of_fewest_cycles,) * has_buffers):
            if self.deadline.passed:
                break
            programs = [p for p in best.programs[: SETTINGS.buffer_programs] if not self.estimates.of_program(p, False).refused]
            known = {variant.base for variant in self.search.variants}
            buffered = tuple(v for program in programs for step in steps for v in step(program) if v.base not in known)
            if buffered:
                self.search.variants += buffered
                replace(self.search, variants=buffered).cheapest(self.budget, self._kept)
                best = self.search.cheapest(self.budget, self._kept)
        return best

    def _with_turned_inputs(self, best: SearchOutcome, variants: VariantSearch) -> SearchOutcome:
        """Return the cheapest programs if large inputs may also be stored by their other dimension, with preloads of the operands
        that are looked up then. Formats are chosen before preloads, so formats that need such lookups were passed over."""
        if "preloads" not in self.request.allow or not best.programs:
            return best
        limit = SETTINGS.hopeful_variant * best.programs[0].cycles
        for variant in variants.turned(best.programs[0].variant):
            program = self._quick_program(variant, inf)
            if program is None or self.deadline.passed:
                continue
            preloaded = {self._quick(own, limit): own for own in self.buffers.of_preloads(program)}
            fewest = min(preloaded, default=inf)
            if fewest < inf:
                self.search.variants += (preloaded[fewest],)
                best = self.search.cheapest(self.budget, self._kept)
        return best

    def _quick(self, variant: Variant, limit: float) -> float:
        """Return the expected cycles of the program that `_quick_program` finds. They are infinite if it finds none."""
        program = self._quick_program(variant, limit)
        return inf if program is None else program.cycles

    def _quick_program(self, variant: Variant, limit: float) -> DealtPath | None:
        """Return the best program of a variant with lanes for a few ranges in one order each; None if it takes more cycles than `limit`."""
        search = replace(self.search, variants=(variant,), trying=lambda text: None)
        outcome = search.cheapest(self.budget, 1, effort=Effort(SETTINGS.quick_ranges, limit, quick=True))
        return outcome.programs[0] if outcome.programs else None

    @property
    def _levers_to_leave(self) -> tuple[str, ...]:
        """The levers of the search whose value is measured: the search is repeated without each of them."""
        return tuple(name for name, allowed in LEVERS.items() if not allowed or allowed in self.request.allow)

    def _levers(self) -> Iterable[Lever]:
        """Yield the cycles that are expected without each lever; none once the deadline has passed."""
        for name in self._levers_to_leave:
            if self.deadline.passed:
                return
            outcome = self.search.cheapest(self.budget, 1, ALL_LEVERS.without(name), Effort(SETTINGS.lever_ranges))
            yield Lever(name, outcome.programs[0].cycles if outcome.programs else inf)

    def _curve_start(self, component: str) -> int:
        """Return the limit of a component with which its curve begins."""
        return self.budget.limits.get(component, PARETO_START.get(component, 16 * 1024**2))

    def _pareto(self, component: str) -> list[ParetoPoint]:
        """Return the curve of cycles over a component. Each point has half of what the point before it takes as its limit."""
        limit = self._curve_start(component)
        points: list[ParetoPoint] = []
        while limit >= 1 and not self.deadline.passed:
            outcome = self.search.cheapest(self.budget.with_limit(component, limit), 1)
            if not outcome.programs:
                break
            trial = self.estimates.of_program(outcome.programs[0], False)
            if self.request.top and not trial.refused:
                (trial,) = self.simulations.of_programs([trial])
            trial = trial if self.placing is None or trial.refused else self.placing.placed(trial)
            used = getattr(trial.resources, component) or 0
            if not trial.refused:
                points.append(ParetoPoint({component: limit}, trial))
            limit = min(limit // 2, max(used, 1) // 2) if used else 0
        return undominated(points, component)

    def _busy(self, estimate: ProgramEstimate, cycles: float) -> dict[str, float]:
        """Return for what share of `cycles` the arithmetic units that the budget limits, and the memory, are busy."""
        work = total_lane_cycles(estimate.regions, self.factory.machine)
        shares = {
            name: work.get(name, 0.0) / limit / cycles
            for name, limit in self.budget.limits.items()
            if name in ("mul", "add", "special")
        }
        memory = sum(r.times * r.bound.memory / (1 - r.bound.refresh) for r in estimate.regions)
        return {**shares, "memory": memory / cycles}

    def _operators(self) -> Iterator[OrderedRange]:
        """Yield the operators of the program, each as a region in one lane."""
        graph = self.published.graph
        for state in graph.states(fused=False):
            yield from graph.edges(state, fused=False) if state.cut < graph.last else ()

    def _no_room(self) -> FuseFlowError:
        """Return the error that names the components of which even single operators take more than the budget has."""
        if (array := self.request.array) is not None:
            uses = (
                (edge, tile_use(piece.graph, array, self.factory.machine)) for edge in self._operators() for piece in edge.pieces
            )
            if (large := next((one for one in uses if not one[1].fits), None)) is not None:
                return ArrayError(f"{large[1].shortage(large[0].name)}; it is one operator in one lane", hint=LARGER_ARRAY)
        least: dict[tuple[str, str], int] = {}
        unbounded: set[str] = set()
        for edge in self._operators():
            over = self.request.budget.exceeded(Resources.most_of(figures.resources for figures in edge.figures))
            least |= {(edge.name, name): value for name, value in over.items() if value is not None}
            unbounded |= {name for name, value in over.items() if value is None}
        what = ", ".join(f"{name}={amount_text(name, value)} of `{edge}`" for (edge, name), value in least.items())
        hints = [f"single operators take {what}"] if what else []
        if unbounded:
            names = " and ".join(f"`{name}`" for name in sorted(unbounded))
            hints.append(
                f"FIFOs of machine `{self.factory.machine.name}` have no bound, so that no {names} has room for them: "
                "`--set fifo_depth=64` gives them one"
            )
        return UsageError(
            f"no schedule of `{self.factory.source.name}` has room in {self.budget}", hint="; ".join(hints) or "a larger budget"
        )
