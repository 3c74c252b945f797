"""Places and routes the best schedules on an array: the counts of tiles say what fits, and a chosen schedule is laid out as a whole.

A region is loaded before it runs. How many hops its links have is known once it is placed, so the search counts tiles alone, which is the
least that loading takes. Schedules that were simulated ran with their links, and are placed already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fuseflow.array.placed_region import PlacedRegion
from fuseflow.autoscheduler.budget.trials import NOT_PLACED, Trial, TrialEstimates
from fuseflow.errors import ArrayError
from fuseflow.run.placed import RegionPlacing
from fuseflow.run.result import loading_after
from fuseflow.schedule import Schedule


@dataclass(frozen=True, slots=True)
class TrialPlacing:
    """Places trials that were not simulated."""

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
