"""The memory of a restricted region: its arrays are at the addresses of the arrays of the whole region.

Which banks arrays share, and whether they meet in one at the same time, follows from where they are read and written. That
changes slowly on the way through them: in one random attention, the whole first fifth took 2.7 % less time than an average fifth.
So the rows of a replicate are at a random position within the addresses of their matrix, which is the same position for all
matrices. A tensor that is read both whole and restricted has one address. The memory also refreshes itself at another time in
each replicate. Otherwise replicates of equal rows would all see one refresh more than their share, or one less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from fuseflow.machine.machine import Machine
from fuseflow.memory.controller import Controller, ControllerFactory
from fuseflow.memory.layout import AddressRange, ArrayName, array_elements, lay_out, tensor_arrays
from fuseflow.samml.nodes import Graph
from fuseflow.sampling.design import Position
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class RestrictedArrays:
    """The arrays of a restricted region: the `sources` of restricted tensors by name, and the bytes that the whole region is
    expected to write to each array. The restriction has this `share` of the coordinates, and is run at this `position`."""

    sources: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[ArrayName, int] = field(default_factory=dict)
    share: float = 1.0
    position: Position = field(default_factory=Position)


@dataclass
class PlacedController(Controller):
    """A memory controller whose arrays are within the addresses of the arrays of the `whole` graph, which is not restricted."""

    whole: Mapping[ArrayName, AddressRange] = field(default_factory=dict)
    restricted: RestrictedArrays = field(default_factory=RestrictedArrays)

    def lay_out(self, graph: Graph, tensors: Mapping[str, Tensor]) -> dict[ArrayName, AddressRange]:
        """Return the addresses of every array of a graph, within those of the whole array that it is a part of."""
        own = super().lay_out(graph, tensors)
        self.places = {array: replace(place, base=self._base(array, place)) for array, place in own.items()}
        return self.places

    def open(self) -> None:
        """Begin at the phase between two refreshes that the position says."""
        from fuseflow.memory.models import Hbm2  # loads the compiler

        super().open()
        model = self.memory.model
        if isinstance(model, Hbm2):
            for channel in map(model.record, range(len(model.blocks))):
                channel["next_refresh"] -= int(self.restricted.position.phase * int(channel["next_refresh"]))

    def _base(self, array: ArrayName, own: AddressRange) -> int:
        tensor, level, kind = array
        source = (self.restricted.sources.get(tensor, tensor), level, kind)
        place = self.whole[source]
        length, part = place.length, own.length
        if source in self.restricted.written:
            length = self.restricted.written[source]
            part = round(length * self.restricted.share)
        return place.base + int(self.restricted.position.place * max(0, length - part)) // self.line * self.line


def placed(graph: Graph, read: Mapping[str, Tensor], machine: Machine, restricted: RestrictedArrays) -> ControllerFactory:
    """Return a function that makes the memory of a restriction of `graph`, or None for a machine without a timed memory. The
    whole graph reads the tensors `read`."""

    def attach() -> Controller | None:
        controller = machine.controller()
        if controller is None:
            return None
        whole = lay_out(graph, read, controller.capacity, controller.line)
        settings = {f.name: getattr(controller, f.name) for f in fields(Controller) if f.init}
        return PlacedController(**settings, whole=whole, restricted=restricted)

    return attach


def expected_bytes(graph: Graph, results: Mapping[str, Tensor], share: float) -> dict[ArrayName, int]:
    """Return the bytes that a region is expected to write to each array, given the results of a share (`share`) of its
    coordinates."""
    return {
        array: round(array_elements(results[name], array) * width / share)
        for name in graph.outputs
        if name in results
        for array, width in tensor_arrays(graph.declared[name])
    }
