"""A cache of simulations, because schedules that are compared share most of their regions, and choices that keep one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from fuseflow.machine.machine import Machine
from fuseflow.run.callback_types import ProgressCallback, SimulationCallback
from fuseflow.run.compiled import Compiled
from fuseflow.run.placed import RegionPlacing
from fuseflow.run.result import Result
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, Simulation, simulate
from fuseflow.sim.signature import signature
from fuseflow.tensors import Tensor


@dataclass(slots=True)
class SimulationCache:
    """A function that runs graphs as `sim.simulate` does, and keeps the simulations.

    A graph that reads tensors of the same patterns takes the same cycles, because no node but a `drop` decides by a value which
    tokens there are. The values may differ by rounding, if another schedule computed them; the outputs are then the outputs of
    the first run. With `exact`, a simulation is reused only if the values that the graph reads are equal, too.
    """

    exact: bool = False
    simulations: int = 0
    _simulations: dict[Hashable, list[tuple[tuple[str, ...], Simulation]]] = field(default_factory=dict)

    def __call__(
        self,
        graph: Graph,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        progress: Callable[[int], None] | None = None,
        *,
        engine: Engine = "auto",
        expected: float = 0,
    ) -> Simulation:
        shape = signature(graph, tensors)
        runs = self._simulations.setdefault((graph, shape, repr(machine.settings), engine), [])
        if runs and not self.exact and shape is not None:
            return runs[0][1]
        values = tuple(tensors[name].digest() for name in graph.inputs)
        for earlier, simulation in runs:
            if earlier == values:
                return simulation
        simulation = simulate(graph, tensors, machine, progress, engine=engine, expected=expected)
        self.simulations += 1
        runs.append((values, simulation))
        return simulation

    def exactly(self) -> SimulationCache:
        """Return a cache of the same simulations that reuses one only if all values that its graph reads are equal."""
        return replace(self, exact=True)


@dataclass(frozen=True, slots=True)
class CandidateRuns:
    """Runs of candidates, which share their simulations. With a `placing`, they run with the links between their tiles."""

    engine: Engine = "auto"
    placing: RegionPlacing | None = None
    cache: SimulationCache = field(default_factory=SimulationCache)

    def __call__(self, compiled: Compiled, progress: ProgressCallback | None = None, exact: bool = False) -> Result:
        """Run a program. An `exact` run has the values that the program computes, not those of one with the same patterns."""
        run = compiled.run if self.placing is None else partial(self.placing.run, compiled)
        return run(progress, check=False, engine=self.engine, execute=self.cache.exactly() if exact else self.cache)


@dataclass(frozen=True, slots=True)
class CachedChoice:
    """A choice of a schedule: the program that was compiled with it, and the simulations that the choice took."""

    compiled: Compiled
    cache: SimulationCache = field(default_factory=SimulationCache, kw_only=True)

    @property
    def schedule(self) -> Schedule:
        """The schedule that was chosen, in full."""
        return self.compiled.schedule

    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
        jobs: int | None = None,
    ) -> Result:
        """Run the program as `Compiled.run` does, without repeating the simulations that the choice took in this process."""
        return self.compiled.run(progress, check, engine, dedup, watch, self.cache.exactly(), jobs=jobs)
