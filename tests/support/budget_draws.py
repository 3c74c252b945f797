"""Random searches within a budget, and what is wrong with what they choose: it is added up, simulated and computed once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from fuseflow.autoscheduler.array_candidates import candidate_placing
from fuseflow.autoscheduler.budget.buffers import with_entries
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.trials import BudgetChoice
from fuseflow.autoscheduler.search_defaults import ALLOWED
from fuseflow.compiler import compile_source
from fuseflow.einsum.text import show
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

MACHINES = [load_machine("rda"), load_machine("ideal")]
LIMITS = {"mul": (1, 12), "add": (4, 40), "port": (8, 80), "stream": (20, 200), "fifo": (8, 96), "buffer": (1, 64)}
"""The least of each component, and one more than the most: bytes of FIFOs in KB, and of buffers in lines."""
UNITS = {"fifo": 1024, "buffer": 64}


@dataclass(frozen=True, slots=True)
class BudgetDraw:
    """A search: the schedule that holds for every candidate, the machine, and what is asked."""

    base: Schedule
    machine: Machine
    request: BudgetRequest

    @classmethod
    def of(cls, source: Source, simulated: float = 0.3) -> BudgetDraw:
        """Draw a search, which follows from the program. This share of searches simulates one to three programs."""
        rng = np.random.default_rng(crc32(show(source.program).encode()))
        read = {name for einsum in source.program.einsums for name in einsum.operands}
        limits = {name: int(rng.integers(*span)) * UNITS.get(name, 1) for name, span in LIMITS.items()}
        budget = Budget.of({name: limits[name] for name in limits if rng.random() < 0.5} or {"mul": limits["mul"]})
        allow = frozenset(name for name in ALLOWED if rng.random() < 0.5)
        top = int(rng.integers(1, 4)) if rng.random() < simulated else 0
        names = [tensor.name for tensor in source.program.inputs if rng.random() < 0.3 and tensor.name in read]
        base = with_entries(Schedule(), "buffers", {name: 64 * int(rng.integers(1, 9)) for name in names})
        base = base.lower(writers="lanes") if rng.random() < 0.5 else base
        return cls(base, MACHINES[int(rng.integers(2))], BudgetRequest(budget, allow=allow, top=top))

    def choice(self, source: Source) -> BudgetChoice:
        """Search. Raises a subclass of `FuseFlowError` for a program that has no room, or cannot be compiled."""
        return budget_schedule(source, self.base, self.machine, self.request)

    def faults(self, source: Source, choice: BudgetChoice) -> Iterator[str]:
        """Yield what is wrong with a choice."""
        budget = self.request.budget
        estimate = compile_source(source, choice.schedule, self.machine).estimate(Estimator(assume_unknown=True))
        for region in estimate.regions:
            if over := budget.exceeded(region.resources):
                yield f"region {region.name} exceeds {over}"
        if choice.chosen.refused:
            yield f"what is chosen is refused: {choice.chosen.refused}"
        if choice.chosen.cycles is not None:
            yield from self._faults_of_run(source, choice)

    def _faults_of_run(self, source: Source, choice: BudgetChoice) -> Iterator[str]:
        cycles, unfused = choice.chosen.cycles, choice.unfused
        compiled, array = compile_source(source, choice.schedule, self.machine), self.request.array
        placing = candidate_placing(array, self.machine)
        result = compiled.run() if placing is None else placing.run(compiled, check=True)
        again = result.cycles + result.loading_cycles
        if again != cycles:
            yield f"it takes {again:,} cycles again, not {cycles:,}"
        if result.check is None or not result.check.passed:
            yield f"its outputs are wrong: {result.check}"
        for region in result.regions:
            if over := self.request.budget.exceeded(region.resources):
                yield f"the run of region {region.name} exceeds {over}"
        if unfused is not None and not unfused.refused and unfused.cycles is not None and unfused.cycles < again:
            yield f"it is slower than unfused, of {unfused.cycles:,} cycles"
        ran = [trial.cycles for trial in choice.trials if trial.cycles is not None and not trial.refused]
        if min(ran) != cycles:
            yield f"another trial took {min(ran):,} cycles"
