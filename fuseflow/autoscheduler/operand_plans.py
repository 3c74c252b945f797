"""The choice of a plan: the parts in which each sparse operand of a product is stored, compared at equal numbers of product
units.

Candidates are estimated one operand after the other, and the best of them are simulated, "no change" always among them. Two parts
run on two units at a time. So a single format is compared on two lanes: the gain of a second unit is not a gain of the plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from fuseflow.autoscheduler.array_candidates import expected_cycles
from fuseflow.autoscheduler.simulation_cache import CandidateRuns
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError, PlanError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.machine.machine import Machine
from fuseflow.plan.partition import Form, PlannedPart
from fuseflow.plan.plan import Plan
from fuseflow.plan.products import products_of
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

UNITS = 2
"""The number of product units of each candidate."""
SIDES = (1, 2, 4, 8, 16, 32)
"""The sides of blocks."""
ELEMENTS = "elements"
NM = ("nm(2:4)", "nm(1:2)")
"""The forms of at most n entries in each m neighbouring coordinates."""
BESIDE_ELEMENTS = ("8x8", "16x16", "32x32", *NM)
"""The formats that are always tried as one of two parts: they may suit most of an operand, but not all of it."""
CLOSE, CLOSE_RUNS = 1.05, 4
"""Trials whose estimates are at most `CLOSE` times the best are simulated, too, at most `CLOSE_RUNS` times the wanted ones."""
FAR = 1.15
"""For each size of blocks, the best trial is simulated, too, if its estimate is at most this many times the best one: estimates
are wrong by the same factor for blocks of one size, and by different ones for others."""
LIKELY = 5
"""How many of the best formats for the whole operand are tried as a part of it."""


@dataclass(frozen=True, slots=True)
class PlanTrial:
    """A plan that was considered, as part of a schedule that may deal lanes, too.

    `forms` has the form of each part of the `operand`, which takes as many product units as it has parts, times the `lanes`.
    Without forms it is stored as before. `cycles` is None if it was not simulated, and `refused` says why it cannot be compiled
    or run.
    """

    operand: str
    forms: tuple[str, ...]
    schedule: Schedule
    lanes: int = 1
    estimate: float | None = None
    cycles: int | None = None
    chosen: bool = False
    refused: str = ""

    @property
    def name(self) -> str:
        """The parts and lanes of the operand as text: `32x32 and elements`, or `4x4, 2 lanes`."""
        kept = "as it is" if self.operand else "no change"
        return (" and ".join(self.forms) or kept) + (f", {self.lanes} lanes" if self.lanes > 1 else "")

    @property
    def units(self) -> int:
        """How many product units the operand takes."""
        return max(1, len(self.forms)) * self.lanes

    @property
    def entries(self) -> int:
        """How many entries the largest blocks have, 1 without blocks."""
        return max((math.prod(Form.parse(form).block) for form in self.forms), default=1)

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain values."""
        return {
            "operand": self.operand,
            "name": self.name,
            "units": self.units,
            "estimate": None if self.estimate is None else round(self.estimate),
            "cycles": self.cycles,
            "chosen": self.chosen,
            "refused": self.refused,
            "plan": self.schedule.plan.to_yaml(),
        }


@dataclass(frozen=True, slots=True)
class PlanSearch:
    """A search among the plans of a program on a machine."""

    source: Source
    machine: Machine
    top: int
    estimator: Estimator
    runs: CandidateRuns

    def choose(self, schedule: Schedule) -> tuple[Schedule, tuple[PlanTrial, ...]]:
        """Return the schedule with the best plan, and all trials. If trials are simulated, no plan is slower than none."""
        base = self._estimated(PlanTrial("", (), replace(schedule, plan=Plan())))
        if base.refused:
            return base.schedule, (replace(base, chosen=True),)
        best, trials = base, [base]
        # Inputs may be stored in parts if they are sparse matrices with numbers that are factors of products.
        sparse = [name for name, tensor in self.source.tensors.items() if not tensor.format.all_dense]
        for operand in [name for name in sparse if _divisible(self.source.program, name)]:
            candidates = self._candidates(operand, best.schedule)
            trials += candidates
            best = min([best, *candidates], key=_expected)
        return self._confirmed(base, trials)

    def _candidates(self, operand: str, schedule: Schedule) -> list[PlanTrial]:
        """Return the ways to store an operand, each with its estimate."""
        dealt = self._dealt(operand, schedule)
        lanes, count = (schedule, 1) if dealt is None else (dealt, UNITS)
        whole = [] if dealt is None else [self._estimated(PlanTrial(operand, (), dealt, UNITS))]
        forms = _forms(self.source.program.declared[operand].shape)
        single = [self._estimated(_divided(operand, (form,), lanes, count)) for form in forms]
        ranked = sorted((trial for trial in single if not trial.refused), key=_expected)
        likely = [*(form for trial in ranked[:LIKELY] for form in trial.forms), ELEMENTS]
        first = dict.fromkeys((*likely, *(form for form in BESIDE_ELEMENTS if form in forms)))
        pairs = {frozenset((one, other)): (one, other) for one in first for other in likely if ELEMENTS != one != other}
        return [*whole, *single, *(self._estimated(_divided(operand, forms, schedule, 1)) for forms in pairs.values())]

    def _dealt(self, operand: str, schedule: Schedule) -> Schedule | None:
        """Return a schedule that deals the product with an operand to lanes; None if lanes are dealt, or nothing can be."""
        product = products_of(self.source.program, operand)[0]
        rows = [i for i in product.einsum.indices if isinstance(i, str) and i not in product.indices]
        compiled = self._compiled(schedule)
        region = next((r.name for r in compiled.regions if product.einsum.name in r.einsums), None)
        if schedule.parallel or not rows or region is None:
            return None
        return schedule.par(**{f"{region}.{rows[0]}": UNITS})

    def _estimated(self, trial: PlanTrial) -> PlanTrial:
        """Return a trial with its estimate and the weights that its plan lacks, or with the reason why there is none."""
        try:
            compiled = self._compiled(trial.schedule)
            return replace(trial, schedule=compiled.schedule, estimate=expected_cycles(compiled, self.estimator))
        except FuseFlowError as error:
            return replace(trial, refused=error.message)

    def _confirmed(self, base: PlanTrial, trials: list[PlanTrial]) -> tuple[Schedule, tuple[PlanTrial, ...]]:
        """Simulate the trials with the best estimates for each number of parts, since estimates are wrong by different factors
        for these. Return the best schedule, and all trials."""
        ranked = sorted((trial for trial in trials if not trial.refused), key=_expected)
        if self.top:
            likely = [t for parts in range(1 + UNITS) for t in self._likely([t for t in ranked if len(t.forms) == parts])]
            runs = [base, *(trial for trial in likely if trial is not base)]
            cycles = {id(trial): self._simulated(trial) for trial in runs}
            trials = [cycles.get(id(trial), trial) for trial in trials]
            chosen = min((t for t in trials if t.cycles is not None), key=lambda t: t.cycles or 0, default=trials[0])
        else:
            chosen = ranked[0]
        return chosen.schedule, tuple(replace(t, chosen=t is chosen) for t in trials)

    def _likely(self, ranked: list[PlanTrial]) -> list[PlanTrial]:
        """Return the best of ranked trials, and a few more that the estimate cannot tell from the best."""
        close = [trial for trial in ranked[: CLOSE_RUNS * self.top] if _expected(trial) <= CLOSE * _expected(ranked[0])]
        likely = ranked[: max(self.top, len(close))]
        best: dict[int, PlanTrial] = {}
        for trial in ranked:
            if _expected(trial) <= FAR * _expected(ranked[0]):
                best.setdefault(trial.entries, trial)
        return [*likely, *(trial for trial in best.values() if trial not in likely)]

    def _simulated(self, trial: PlanTrial) -> PlanTrial:
        try:
            result = self.runs(self._compiled(trial.schedule), exact=True)
            return replace(trial, cycles=result.cycles + result.loading_cycles)
        except FuseFlowError as error:
            return replace(trial, refused=error.message)

    def _compiled(self, schedule: Schedule) -> Compiled:
        return compile_source(self.source, schedule, self.machine)


def _forms(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the forms in which an operand of this shape can be stored whole: no side of a block is twice the matrix or more."""
    rows, columns = ([side for side in SIDES if side < 2 * size] for size in shape)
    return (ELEMENTS, *(f"{r}x{c}" for r in rows for c in columns if r * c > 1), *NM)


def _divided(operand: str, forms: tuple[str, ...], schedule: Schedule, lanes: int) -> PlanTrial:
    parts = sorted((PlannedPart(Form.parse(form)) for form in forms), key=lambda part: part.form.nm is None)
    return PlanTrial(operand, forms, replace(schedule, plan=Plan((*schedule.plan.operands, (operand, tuple(parts))))), lanes)


def _divisible(program: Program, name: str) -> bool:
    declared = program.declared.get(name)
    if declared is None or len(declared.shape) != 2 or declared.fill != 0 or declared.block:
        return False
    try:
        return bool(products_of(program, name))
    except PlanError:
        return False


def _expected(trial: PlanTrial) -> float:
    return float("inf") if trial.estimate is None else trial.estimate
