"""Candidates on an array of tiles: what loading them takes by the counts of their tiles, and their placement for a simulation."""

from __future__ import annotations

from collections.abc import Hashable

from fuseflow.array.capacity import fit_together
from fuseflow.array.placed_region import PlacementSearch
from fuseflow.array.settings import ArraySettings
from fuseflow.errors import ArrayError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.machine.machine import Machine
from fuseflow.resources import Resources
from fuseflow.run.compiled import Compiled
from fuseflow.run.placed import RegionPlacing
from fuseflow.run.result import RegionLoading, loading_after

CANDIDATES = PlacementSearch(effort=1.0, seeds=2)
"""What is spent on the placement of a region of a candidate: a fifth of the runs of `fuseflow place`, and a tenth of the moves in each."""

LARGER_ARRAY = "a larger array, `--preload TENSOR`, or ports that are shared (`ports: {share: 2}`)"
"""The hint where no schedule fits an array: there is nothing left to cut."""


def candidate_placing(array: ArraySettings | None, machine: Machine) -> RegionPlacing | None:
    """Return what places candidates on an array, None without one."""
    return None if array is None else RegionPlacing(array, machine, CANDIDATES)


def counted_loading(compiled: Compiled, estimate: ProgramEstimate, array: ArraySettings) -> dict[str, int]:
    """Return the cycles after the end of the region before in which each region of a program is loaded, by name, as if links had no hops. A
    region with the same graph as the one before it is loaded already, and one that fits beside that is loaded while that runs."""
    loads, cycles = dict[str, RegionLoading](), dict[str, float]()
    estimates = {name: (own, own.resources) for own in estimate.regions for name in own.names}
    before: tuple[Hashable, Resources] | None = None
    for region in compiled.regions:
        (own, used), key = estimates[region.name], region.graph.structure.key
        cycles[region.name] = float(own.bound.cycles)
        if before is not None and before[0] == key:
            loads[region.name] = RegionLoading(0)
        else:
            early = array.resident > 1 and before is not None and fit_together((before[1], used), array)
            loads[region.name] = RegionLoading(own.loading, early)
        before = key, used
    return loading_after(loads, cycles)


def expected_cycles(compiled: Compiled, estimator: Estimator) -> float:
    """Return the cycles that a program is expected to take. If the estimator has an array, the cycles in which its configurations are
    loaded count, too. Raises `ArrayError` if a region does not fit the array."""
    estimate = compiled.estimate(estimator)
    if estimator.array is None:
        return estimate.cycles
    short = next((own.shortage for own in estimate.regions if own.shortage), "")
    if short:
        raise ArrayError(short, hint=LARGER_ARRAY)
    return estimate.cycles + sum(counted_loading(compiled, estimate, estimator.array).values())
