"""Places and routes the best schedules on an array: the counts of tiles say what fits, and a chosen schedule is laid out as a whole.

A region is loaded before it runs. How many hops its links have is known once it is placed, so the search counts tiles alone, which is the
least that loading takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fuseflow.array.placed_region import PlacedRegion, PlacementSearch, place_region
from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.trials import Trial, region_loading
from fuseflow.errors import ArrayError
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

SEARCH = PlacementSearch(effort=1.0, seeds=2)
"""What is spent on the placement of a region: it is to be routed, and its wires hardly change its cycles."""


@dataclass(slots=True)
class TrialPlacing:
    """Places trials on an array. Regions whose graphs differ in names alone are placed once."""

    array: ArraySettings
    machine: Machine
    compiled: Callable[[Schedule], Compiled]
    _placed: dict[Hashable, PlacedRegion] = field(default_factory=dict)

    def confirmed(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials, with the best of them placed: refused if that fails, else with the hops in the cycles of loading. Placing
        ends once no other trial takes fewer cycles than one that is placed."""
        done, waiting, best = list[Trial](), sorted(trials, key=lambda trial: trial.rank), None
        while waiting and not waiting[0].refused and (best is None or waiting[0].rank < best.rank):
            trial = self.placed(waiting.pop(0))
            done.append(trial)
            if not trial.refused and (best is None or trial.rank < best.rank):
                best = trial
        return [*done, *waiting]

    def placed(self, trial: Trial) -> Trial:
        """Return a trial that was placed on the array."""
        try:
            regions = self.regions(trial.schedule)
        except ArrayError as error:
            return replace(trial, refused=f"it fits, but {error.message}")
        cycles = {name: placed.loading_cycles for name, placed in regions.items()}
        return trial.loaded(region_loading(self.compiled(trial.schedule), lambda region: cycles[region.name]))

    def regions(self, schedule: Schedule) -> Mapping[str, PlacedRegion]:
        """Return the placed regions of a schedule, by name. Raises `ArrayError` if one cannot be placed and routed."""
        return {region.name: self._region(region) for region in self.compiled(schedule).regions}

    def _region(self, region: CompiledRegion) -> PlacedRegion:
        if (key := region.graph.structure.key) not in self._placed:
            self._placed[key] = place_region(region.graph, self.array, self.machine, SEARCH)
        return self._placed[key]
