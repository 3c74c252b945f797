"""What a graph in lanes occupies, by arithmetic: what each node occupies in one lane, as often as it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fuseflow.estimate.lane_template import LaneTemplate
from fuseflow.resources import Resources
from fuseflow.resources.area import AreaCount, FifoForm, branches, memory_area
from fuseflow.resources.resource_count import ResourceCount, token_bytes
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.tensors.levels.base import bytes_of


class _Unit(NamedTuple):
    """What a node occupies in one lane; `tokens` are the bytes of a slot at each input, and `fifos` the forms of the FIFOs there. The area
    of a node that deals lanes grows with them, by `branch_area`; of another node it has its own `branches`."""

    lanes: Mapping[str, int]
    stream: bool
    ports: int
    buffer: int
    entry_bytes: int
    tokens: tuple[int, ...]
    area: int
    branch_area: int
    branches: int
    fifos: tuple[FifoForm, ...]


@dataclass(slots=True, eq=False)
class DealtResources:
    """What a graph in lanes of some indices occupies. What its nodes occupy on the machine of the last call is kept."""

    template: LaneTemplate
    _units: tuple[Machine, list[_Unit]] | None = None

    def of(
        self, numbers: Sequence[int], held: Sequence[int], lanes: Mapping[str, int], slots: Sequence[float], machine: Machine
    ) -> Resources:
        """Return the resources, given how often each node is there, what all of these hold, and the slots of each FIFO."""
        totals, ports, stream, area = Counter[str](), 0, 0, 0
        workspace, buffer, fifo, at_fifo = 0, 0, 0.0, 0
        for each, fixed, number, entries in zip(self.template.nodes, self._on(machine), numbers, held, strict=True):
            for name, amount in fixed.lanes.items():
                totals[name] += amount * number
            stream += fixed.stream * number
            ports += fixed.ports * number
            workspace += fixed.entry_bytes * entries
            buffer += fixed.buffer * number
            area += (fixed.area + fixed.branch_area * (lanes[each.lanes_of] if each.lanes_of else fixed.branches)) * number
            if isinstance(each.node, n.Merge):
                depth, all_lanes = machine.first_depth or 0, number * lanes[each.lanes_of]
                fifo += depth * fixed.tokens[0] * all_lanes
                area += fixed.fifos[0].area(depth) * all_lanes
                at_fifo += 1
                continue
            for width, own in zip(fixed.tokens, fixed.fifos, strict=True):
                fifo += slots[at_fifo] * width * number
                area += own.area(int(slots[at_fifo])) * number if machine.first_depth is not None else 0
                at_fifo += 1
        bytes_ = None if machine.first_depth is None else int(fifo)
        grows = machine.fifo_depth == "auto"
        lanes_of = totals["mul"], totals["add"], totals["special"]
        total = None if machine.first_depth is None else area + memory_area(workspace + buffer)
        return Resources(*lanes_of, ports, stream, bytes_, workspace, buffer, area=total, fifo_grows=grows)

    def _on(self, machine: Machine) -> list[_Unit]:
        """Return what each node occupies in one lane on a machine."""
        if self._units is None or self._units[0] is not machine:
            areas = AreaCount(ResourceCount(self.template.graph, machine))
            self._units = machine, [self._unit(areas, each.node) for each in self.template.nodes]
        return self._units[1]

    def _unit(self, areas: AreaCount, node: n.Primitive) -> _Unit:
        count = areas.count
        own, bits = count.lanes(node), count.entry_bits(node)
        return _Unit(
            own,
            node.role != "source" and not own,
            count.ports(node),
            count.node_buffers.get(node.name, 0),
            count.buffers(node) * bytes_of(1, bits) if bits else 0,
            tuple(token_bytes(self.template.graph, port) for port in node.inputs),
            areas.node(node) - areas.branch(node) * branches(node),
            areas.branch(node),
            branches(node),
            tuple(areas.fifo_form(node, k) for k in range(len(node.inputs))),
        )


__all__ = ["DealtResources"]
