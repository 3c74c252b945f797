"""The lines that the ports of a graph in lanes request, for many candidates at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_nodes import NodeStreams
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.lane_template import LaneTemplate, TemplateNode
from fuseflow.estimate.memory_load import ArrayLoad
from fuseflow.estimate.memory_pace import memory_pace
from fuseflow.estimate.port_lines import ArrayPlace, PortLines, ReaderNode, buffered, node_lines, preloaded
from fuseflow.estimate.reference_origins import Addresses
from fuseflow.estimate.stream_flow import Flow, Number, as_number, largest, least
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffer_assignment import buffered_ports
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True, eq=False)
class DealtPorts:
    """The memory ports of a graph that is dealt to lanes. `array_bytes` has the bytes of each array that is read."""

    template: LaneTemplate
    array_bytes: Mapping[ArrayPlace, int]

    def of(self, batch: LaneBatch, streams: Sequence[NodeStreams], machine: Machine) -> list[list[ArrayLoad]]:
        """Return for each candidate its ports, with those of all lanes together. A port's lines are those of the busiest lane,
        times the elements of all lanes over the elements of the busiest."""
        counts, declared = batch.counts(), self.template.graph.declared
        dealing = {each.node.name: each.lanes_of for each in self.template.nodes if isinstance(each.node, n.Fork)}
        forks = {name: as_number(counts[dealing[first]]) for name, first in self.template.first.items() if first in dealing}

        def in_busiest_lane(port: n.Port) -> Flow:
            at = self.template.places.get(self.template.first[port.node])
            if at is None:
                raise Uncountable
            own = streams[at]
            return batch.busiest(own.outputs[port.output], own.axes[len(own.inputs) + port.output])

        addresses = Addresses(self.template.graph, in_busiest_lane, forks)
        ports: list[list[ArrayLoad]] = [[] for _ in batch.candidates]
        for at, (each, own) in enumerate(zip(self.template.nodes, streams, strict=True)):
            if isinstance(each.node, ReaderNode) and not declared[each.node.tensor].resident:
                numbers = batch.each(as_number(np.asarray(self.template.lanes(each, counts))))
                for candidate, port in self._ports(at, each, own, addresses, batch, numbers, machine):
                    ports[candidate].append(port)
        return ports

    def _ports(
        self,
        at: int,
        each: TemplateNode,
        streams: NodeStreams,
        addresses: Addresses,
        batch: LaneBatch,
        numbers: Sequence[int],
        machine: Machine,
    ) -> Iterator[tuple[int, ArrayLoad]]:
        """Yield the ports of node number `at`, each with the number of its candidate. `numbers` has the lanes for each."""
        node, memory = each.node, machine.memory
        assert isinstance(node, ReaderNode)
        line, count = memory_pace(machine).line, len(streams.inputs)
        inputs = [batch.busiest(flow, axis) for flow, axis in zip(streams.inputs, streams.axes, strict=False)]
        outputs = [batch.busiest(flow, axis) for flow, axis in zip(streams.outputs, streams.axes[count:], strict=True)]
        if self.template.graph.declared[node.tensor].preload:
            for port in node_lines(node, addresses, inputs, outputs, line, self.array_bytes):
                for candidate, (own, lanes) in enumerate(zip(_apart(port, batch), numbers, strict=True)):
                    one = preloaded(own, lanes, self.array_bytes, line)
                    yield candidate, ArrayLoad(at, one, lanes, one.lines * lanes, one.lines, one.jumps * lanes)
            return
        times = batch.each(
            least(
                batch.total(flow.elements, each.indices) / largest((1, busy.elements))
                for flow, busy in zip(streams.inputs, inputs, strict=True)
            )
        )
        buffers = buffered_ports(self.template.graph, memory.line) if isinstance(memory, TimedMemory) else {}
        for port in node_lines(node, addresses, inputs, outputs, line, self.array_bytes):
            for candidate, (own, lanes, more) in enumerate(zip(_apart(port, batch), numbers, times, strict=True)):
                one = buffered(own, node, addresses, inputs[0], line, self.array_bytes, buffers, candidate)
                yield candidate, ArrayLoad(at, one, lanes, one.lines * more, one.lines, one.jumps * more, one.hits)


def _apart(port: PortLines, batch: LaneBatch) -> list[PortLines]:
    """Return the port as one for each candidate, given one whose numbers are arrays over the candidates."""
    names = "lines", "jumps", "dealt", "divided", "at_once", "in_list", "in_turn"
    numbers: list[Number] = [getattr(port, name) for name in names]
    if not any(isinstance(number, np.ndarray) for number in numbers):
        return [port] * len(batch.candidates)
    columns = zip(*map(batch.each, numbers), strict=True)
    return [port._replace(**dict(zip(names, own, strict=True))) for own in columns]
