"""The types of functions that a run calls: one that runs a graph, and callbacks that are told of the progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Engine, Simulation
from fuseflow.tensors import Tensor

ProgressCallback = Callable[[str, int], None]
"""A function that is called now and then while a region runs, with the name of the region and the number of firings so far."""
SimulationCallback = Callable[[CompiledRegion, Mapping[str, Tensor], Simulation], None]
"""A function that is called after every simulation with the region, the tensors that it read, and the simulation."""


class GraphExecutor(Protocol):
    """A function that runs a graph: `sim.simulate`, or a cache of its results."""

    def __call__(
        self,
        graph: Graph,
        tensors: Mapping[str, Tensor],
        machine: Machine,
        progress: Callable[[int], None] | None = None,
        *,
        engine: Engine = "auto",
        expected: float = 0,
    ) -> Simulation: ...
