"""All candidates of a small program, one by one: what a search under a budget must find the best of.

Nothing of the search is used but the rules that say which candidates there are. Every program is compiled as a whole and estimated as a
whole: no state at a cut, no arithmetic of lanes, no bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from fuseflow.array.capacity import tile_use
from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.budget.lane_models import lane_counts
from fuseflow.autoscheduler.budget.settings import SETTINGS
from fuseflow.compiler import compile_source
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate, RegionEstimate
from fuseflow.frontend.imported_program import Source
from fuseflow.lower.regions import CompiledRegion
from fuseflow.resources import Resources
from fuseflow.resources.budget import Budget
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine
from fuseflow.tensors import Format, pack

FORMATS = ("dense", "csr", "csc", "dcsr")
STEPS = (
    "T{n}[i, j] = sum(k) {a}[i, k] * {b}[k, j]",
    "T{n}[i, j] = sum(k) {b}[i, k] * {a}[k, j]",
    "T{n}[i, j] = {a}[i, j] + {b}[i, j]",
    "T{n}[i, j] = {a}[i, j] * {b}[i, j]",
    "T{n}[i, j] = max({a}[i, j], 0)",
    "T{n}[i, j] = {a}[j, i] * 2",
)
"""Operators, of which `a` is the last result, and `b` an input or an earlier result."""


def random_source(seed: int, size: int = 4) -> Source:
    """Return a program of two to four operators in a row, with two or three inputs in any format."""
    rng = np.random.default_rng(seed)
    inputs = [f"A{n}" for n in range(rng.integers(2, 4))]
    arrays = {
        name: np.round(rng.normal(size=(size, size)), 2) * (rng.random((size, size)) < rng.choice((0.3, 0.6, 1.0)))
        for name in inputs
    }
    formats = {name: str(rng.choice(FORMATS)) for name in inputs}
    names, lines, last = list(inputs), list[str](), inputs[0]
    for n in range(int(rng.integers(2, 5))):
        other = str(rng.choice([name for name in names if name != last]))
        lines.append(str(rng.choice(STEPS)).format(n=n, a=last, b=other))
        last = f"T{n}"
        names.append(last)
    read = [name for name in inputs if any(f"{name}[" in line.partition("=")[2] for line in lines)]
    declared = [f"tensor {name}[{size}, {size}] {formats[name]}" for name in read]
    program = parse("\n".join(("program random", *declared, *lines, f"output {last}")))
    tensors = {name: pack(arrays[name], Format.parse(formats[name], 2)) for name in read}
    return Source(f"random{seed}", program, tensors)


class Way(NamedTuple):
    """A way to run a region: its cycles, infinite if it does not fit, those of loading it on an array, and its tiles by kind."""

    cycles: float
    loading: int = 0
    tiles: tuple[int, ...] = ()


@dataclass(slots=True)
class AllCandidates:
    """All programs of a source in the formats of `base`: every partition, every order of every region and all lanes."""

    source: Source
    machine: Machine
    budget: Budget
    base: Schedule
    orders: int
    array: ArraySettings | None = None
    """Every region fits this array, and its cycles have those of loading it in them. If two regions may lie there, one that has room beside
    the one before is loaded while that runs."""
    estimator: Estimator = field(default_factory=lambda: Estimator(assume_unknown=True))
    compiled: int = 0
    _lanes: dict[object, Way] = field(default_factory=dict)

    def best(self) -> float:
        """Return the fewest cycles of all programs that fit; infinite if none does."""
        names = [e.name for e in self.source.program.einsums]
        cuts = (cut for n in range(len(names)) for cut in combinations(range(1, len(names)), n))
        return min((self._best_of(schedule_of(self.base, names, cut), ()) for cut in cuts), default=inf)

    def _best_of(self, schedule: Schedule, ordered: tuple[str, ...]) -> float:
        """Return the best of a partition of which the orders of some regions are chosen, in all orders of the others."""
        program = self._program(schedule)
        if program is None:
            return inf
        region = next((r for r in program.regions if r.einsums and r.name not in ordered), None)
        if region is None:
            return self._best_lanes(schedule, program)
        choices = (schedule.order(region.name, order) for order in self._orders(region))
        return min((self._best_of(choice, (*ordered, region.name)) for choice in choices), default=inf)

    def _orders(self, region: CompiledRegion) -> list[tuple[str, ...]]:
        legal = [c for c in region.fused.compared if c.cost is not None]
        least = min((c.rank for c in legal), default=0.0)
        ranked = sorted(legal, key=lambda c: (c.order != region.fused.order, c.rank))
        likely = [c.order for c in ranked if c.rank <= SETTINGS.worst_order * least]
        return list(dict.fromkeys((region.fused.order, *likely)))[: self.orders]

    def _best_lanes(self, schedule: Schedule, program: Compiled) -> float:
        """Return the cycles of a program whose regions each have their best lanes. Lanes of one region change nothing of another."""
        estimates = _by_name(self._estimate(program))
        ways = [
            {*(self._with_lanes(schedule, region) if region.einsums else [self._cost(estimates[region.name], region)])}
            for region in program.regions
        ]
        if self.array is None or self.array.resident == 1:
            return sum(min(way.cycles + way.loading for way in each) for each in ways)
        return min(map(self._together, product(*ways)))

    def _together(self, ways: tuple[Way, ...]) -> float:
        """Return the cycles of regions one after the other on an array that has room for two."""
        total = 0.0
        for before, way in zip((Way(0.0), *ways), ways, strict=False):
            assert self.array is not None
            both = zip(before.tiles, way.tiles, self.array.available.values(), strict=True) if before.tiles and way.tiles else ()
            fit = bool(before.tiles and way.tiles) and all(a + b <= most for a, b, most in both)
            total += way.cycles + (max(0.0, way.loading - before.cycles) if fit else way.loading)
        return total

    def _with_lanes(self, schedule: Schedule, region: CompiledRegion) -> Iterator[Way]:
        stored = tuple((name, str(t.format)) for name, t in region.fused.stored.items())
        for number in range(SETTINGS.max_dealt + 1):
            for indices in combinations(region.fused.order, number):
                counts = [[c for c in lane_counts(region.fused.sizes[i]) if c > 1] for i in indices]
                for lanes in product(*counts):
                    key = region.einsums, region.fused.order, stored, indices, lanes, tuple(region.fused.results)
                    if key not in self._lanes:
                        dealt = schedule.par(**{f"{region.name}.{i}": c for i, c in zip(indices, lanes, strict=True)})
                        self._lanes[key] = self._region_cycles(dealt, region.name)
                    yield self._lanes[key]

    def _region_cycles(self, schedule: Schedule, name: str) -> Way:
        program = self._program(schedule)
        if program is None:
            return Way(inf)
        region = next(region for region in program.regions if region.name == name)
        return self._cost(_by_name(self._estimate(program))[name], region)

    def _cost(self, estimate: RegionEstimate, region: CompiledRegion) -> Way:
        if self.budget.exceeded(estimate.resources):
            return Way(inf)
        cycles = float(estimate.bound.cycles)
        if self.array is None:
            return Way(cycles)
        load, use = self.array.load, tile_use(region.graph, self.array, self.machine)
        words = load.words_per_tile * sum(use.needed.values())
        loading = ceil(words / load.words_per_cycle) + load.drain
        return Way(cycles, loading, tuple(use.needed[kind] for kind in self.array.kinds)) if use.fits else Way(inf)

    def _program(self, schedule: Schedule) -> Compiled | None:
        self.compiled += 1
        try:
            return compile_source(self.source, schedule, self.machine)
        except FuseFlowError:
            return None

    def _estimate(self, program: Compiled) -> ProgramEstimate:
        return program.estimate(self.estimator)


def schedule_of(base: Schedule, names: list[str], cut: tuple[int, ...]) -> Schedule:
    """Return the schedule that fuses what stands between the cuts."""
    groups = [names[start:end] for start, end in zip((0, *cut), (*cut, len(names)), strict=True)]
    fused = {"-".join((group[0], group[-1])): tuple(group) for group in groups if len(group) > 1}
    return replace(base, fuse_regions=tuple(fused) or ("none",), regions=tuple(fused.items()))


def _by_name(estimate: ProgramEstimate) -> dict[str, RegionEstimate]:
    """Return the estimate of every region, those that repeat one before it included."""
    return {name: r for r in estimate.regions for name in (r.name, *(repeat.name for repeat in r.repeats))}


def occupied(program: Compiled, estimator: Estimator) -> Resources:
    """Return the most that a region of a compiled program occupies."""
    return Resources.most_of(region.resources for region in program.estimate(estimator).regions)
