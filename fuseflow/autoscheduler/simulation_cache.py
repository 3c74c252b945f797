"""A cache of simulations, because schedules that are compared share most of their regions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fuseflow.samml.nodes import Graph
from fuseflow.sim import Engine, Machine, Simulation, simulate
from fuseflow.sim.signature import signature
from fuseflow.tensors import Tensor


@dataclass(slots=True)
class SimulationCache:
    """A function that runs graphs as `sim.simulate` does, and keeps the simulations.

    A graph that reads tensors of the same patterns takes the same cycles, because no node but a `drop` decides by a value which tokens
    there are. The values may differ by rounding, if another schedule computed them; the outputs are then those of the first run. With
    `exact`, a simulation is reused only if the values that the graph reads are equal, too.
    """

    exact: bool = False
    simulations: int = 0
    _simulations: dict[Hashable, list[tuple[str, Simulation]]] = field(default_factory=dict)

    def __call__(
        self,
        graph: Graph,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        progress: Callable[[int], None] | None = None,
        *,
        engine: Engine = "auto",
    ) -> Simulation:
        shape = signature(graph, tensors)
        runs = self._simulations.setdefault((graph, shape, repr(machine.settings), engine), [])
        if runs and not self.exact and shape is not None:
            return runs[0][1]
        values = _values_digest(graph, tensors)
        for earlier, simulation in runs:
            if earlier == values:
                return simulation
        simulation = simulate(graph, tensors, machine, progress, engine=engine)
        self.simulations += 1
        runs.append((values, simulation))
        return simulation

    def exactly(self) -> SimulationCache:
        """Return a cache of the same simulations that reuses one only if all values that its graph reads are equal."""
        return replace(self, exact=True)


def _values_digest(graph: Graph, tensors: Mapping[str, Tensor]) -> str:
    """Return a digest of all arrays that a graph reads."""
    total = hashlib.sha256()
    for name in graph.inputs:
        tensor = tensors[name]
        for array in (*(a for level in tensor.levels for a in level.arrays.values()), tensor.values):
            total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()
