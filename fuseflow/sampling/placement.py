"""The memory of a restricted region: its arrays begin where those of the region itself begin.

Which banks two arrays share follows from where they begin. So the rows of a matrix lie at the start of the place of the matrix, and
the rest of that place stays empty. A tensor that is read whole and restricted lies in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from fuseflow.samml.nodes import Graph
from fuseflow.sim import Machine
from fuseflow.sim.memory.controller import Controller, ControllerFactory
from fuseflow.sim.memory.layout import AddressRange, ArrayName, lay_out
from fuseflow.tensors import Tensor


@dataclass
class PlacedController(Controller):
    """A controller whose arrays lie where another graph has those of the tensors of these `sources`, by name."""

    whole: Mapping[ArrayName, AddressRange] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def lay_out(self, graph: Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Give every array of a graph the place of the array that it is a part of."""
        own = super().lay_out(graph, tensors)
        self.places = {
            (tensor, level, kind): replace(place, base=self.whole[self.sources.get(tensor, tensor), level, kind].base)
            for (tensor, level, kind), place in own.items()
        }
        return self.places


def placed(graph: Graph, read: Mapping[str, Tensor], machine: Machine, sources: Mapping[str, str]) -> ControllerFactory:
    """Return what makes the memory of a restriction of `graph`, which reads `read` when it is whole."""

    def attach() -> Controller | None:
        controller = machine.controller()
        if controller is None:
            return None
        whole = lay_out(graph, read, controller.capacity, controller.line)
        settings = {f.name: getattr(controller, f.name) for f in fields(Controller) if f.init}
        return PlacedController(**settings, whole=whole, sources=sources)

    return attach
