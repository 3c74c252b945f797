"""The resources of a graph in lanes, by arithmetic: those of each node in one lane, times the number of its lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fuseflow.estimate.lane_template import LaneTemplate, TemplateNode
from fuseflow.machine.machine import Machine
from fuseflow.resources import HeldEntries, Resources
from fuseflow.resources.area import AreaCount, FifoForm, branches, memory_area
from fuseflow.resources.resource_count import ResourceCount, token_bytes
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import bytes_of


class _Unit(NamedTuple):
    """The resources of a node in one lane. `tokens` has the bytes of a slot at each input, and `fifos` the forms of the FIFOs
    there. The node takes `area`, and `branch_area` for each lane that it deals or merges, or else for each of its `branches`."""

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
    """The resources of a graph that is dealt to lanes. The resources of its nodes on the machine of the last call are kept."""

    template: LaneTemplate
    _units: tuple[Machine, ResourceCount, list[_Unit]] | None = None

    def at_most(
        self, held: Mapping[str, HeldEntries], lanes: Mapping[str, int], depth: int | None, machine: Machine
    ) -> Resources:
        """Return the resources if each node holds as many entries in every lane as on one lane. `held` has these by node on one
        lane; other nodes count with the most that they can hold. FIFOs have `depth` slots, None for the machine's."""
        count, _ = self._on(machine)

        def most(each: TemplateNode) -> int:
            if each.serial in held:
                return held[each.serial].most
            return count.most_entries(each.node) if count.entry_bits(each.node) else 0

        entries = [most(each) * self.template.lanes(each, lanes) for each in self.template.nodes]
        return self.of(entries, lanes, depth, machine)

    def of(self, held: Sequence[int], lanes: Mapping[str, int], depth: int | None, machine: Machine) -> Resources:
        """Return the resources, given how many entries each node has `held` in all lanes together, and the slots of FIFOs
        (`depth`; None for the machine's)."""
        totals, ports, stream, area = Counter[str](), 0, 0, 0
        workspace, buffer, fifo, slots = 0, 0, 0, machine.first_depth if depth is None else depth
        nodes = *self.template.nodes, *self.template.left_out
        held = *held, *(0 for _ in self.template.left_out)
        for each, fixed, entries in zip(nodes, self._on(machine)[1], held, strict=True):
            number = self.template.lanes(each, lanes)
            for name, amount in fixed.lanes.items():
                totals[name] += amount * number
            stream += fixed.stream * number
            ports += fixed.ports * number
            workspace += fixed.entry_bytes * entries
            buffer += fixed.buffer * number
            area += (fixed.area + fixed.branch_area * (lanes[each.lanes_of] if each.lanes_of else fixed.branches)) * number
            if slots is None:
                continue
            inputs = list(zip(fixed.tokens, fixed.fifos, strict=True))
            for width, own in inputs[:1] * lanes[each.lanes_of] if isinstance(each.node, n.Merge) else inputs:
                fifo += slots * width * number
                area += own.area(slots) * number
        bytes_ = None if slots is None else fifo
        grows = machine.fifo_depth == "auto"
        lanes_of = totals["mul"], totals["add"], totals["special"]
        total = None if slots is None else area + memory_area(workspace + buffer)
        return Resources(*lanes_of, ports, stream, bytes_, workspace, buffer, area=total, fifo_grows=grows)

    def _on(self, machine: Machine) -> tuple[ResourceCount, list[_Unit]]:
        """Return the count of resources on a machine, and the resources of each node in one lane."""
        if self._units is None or self._units[0] is not machine:
            count, nodes = ResourceCount(self.template.graph, machine), (*self.template.nodes, *self.template.left_out)
            areas = AreaCount(count)
            self._units = machine, count, [self._unit(areas, each.node) for each in nodes]
        return self._units[1:]

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
