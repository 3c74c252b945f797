"""The lines that the ports of a graph in lanes request, for many candidates at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fuseflow.estimate.addresses import Addresses
from fuseflow.estimate.batches import as_number
from fuseflow.estimate.counted.memo import Uncountable
from fuseflow.estimate.dealt_nodes import NodeStreams
from fuseflow.estimate.flows import Flow, Number, largest, least
from fuseflow.estimate.lane_batch import LaneBatch
from fuseflow.estimate.lane_template import LaneTemplate, TemplateNode
from fuseflow.estimate.memory_bound import request_bytes
from fuseflow.estimate.memory_load import LanePorts
from fuseflow.estimate.port_lines import (
    ArrayPlace,
    PortLines,
    ReaderNode,
    buffered,
    node_lines,
    preloaded,
)
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffered_ports import buffered_ports
from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n


@dataclass(frozen=True, slots=True, eq=False)
class DealtPorts:
    """The memory ports of a graph that is dealt to lanes. `array_bytes` has the bytes of each array that is read."""

    template: LaneTemplate
    array_bytes: Mapping[ArrayPlace, int]

    def of(self, batch: LaneBatch, streams: Sequence[NodeStreams], machine: Machine) -> list[list[LanePorts]]:
        """Return for each candidate its ports, with those of all lanes together. A port's lines are those of the busiest lane,
        times the elements of all lanes over the elements of the busiest."""
        flows, counts = _BusiestFlows(self.template, streams, batch), batch.counts()
        dealing = {each.node.name: each.lanes_of for each in self.template.nodes if isinstance(each.node, n.Fork)}
        forks = {name: as_number(counts[dealing[first]]) for name, first in self.template.first.items() if first in dealing}
        addresses = Addresses(self.template.graph, flows, forks)
        ports: list[list[LanePorts]] = [[] for _ in batch.candidates]
        for at, (each, own) in enumerate(zip(self.template.nodes, streams, strict=True)):
            if isinstance(each.node, ReaderNode) and not self.template.graph.declared[each.node.tensor].resident:
                number = as_number(np.asarray(self.template.lanes(each, counts)))
                for candidate, port in self._ports(at, each, own, addresses, batch, number, machine):
                    ports[candidate].append(port)
        return ports

    def _ports(
        self,
        at: int,
        each: TemplateNode,
        streams: NodeStreams,
        addresses: Addresses,
        batch: LaneBatch,
        number: Number,
        machine: Machine,
    ) -> Iterator[tuple[int, LanePorts]]:
        """Yield the ports of a node, each with the number of its candidate. `at` is the number of the node, and `number` its
        lanes."""
        node = each.node
        assert isinstance(node, ReaderNode)
        line, count = request_bytes(machine.memory), len(streams.inputs)
        inputs = [batch.busiest(flow, axis) for flow, axis in zip(streams.inputs, streams.axes, strict=False)]
        outputs = [batch.busiest(flow, axis) for flow, axis in zip(streams.outputs, streams.axes[count:], strict=True)]
        numbers = batch.each(number)
        if self.template.graph.declared[node.tensor].preload:
            for port in node_lines(node, addresses, inputs, outputs, addresses.flows, line, self.array_bytes):
                for candidate, (own, lanes) in enumerate(zip(_apart(port, batch), numbers, strict=True)):
                    one = preloaded(own, lanes, self.array_bytes, line)
                    yield candidate, LanePorts(at, one, lanes, one.lines * lanes, one.lines, one.jumps * lanes)
            return
        times = batch.each(
            least(
                batch.total(flow.elements, each.indices) / largest((1, busy.elements))
                for flow, busy in zip(streams.inputs, inputs, strict=True)
            )
        )
        for port in node_lines(node, addresses, inputs, outputs, addresses.flows, line, self.array_bytes):
            apart = self._buffered(port, node, addresses, inputs, batch, machine)
            for candidate, (own, lanes, more) in enumerate(zip(apart, numbers, times, strict=True)):
                yield candidate, LanePorts(at, own, lanes, own.lines * more, own.lines, own.jumps * more, own.hits)

    def _buffered(
        self,
        port: PortLines,
        node: ReaderNode,
        addresses: Addresses,
        inputs: Sequence[Flow],
        batch: LaneBatch,
        machine: Machine,
    ) -> list[PortLines]:
        """Return the requests of `port` for each candidate of `batch`, a choice of lanes, without those that its reuse buffer answers."""
        memory, apart = machine.memory, _apart(port, batch)
        buffers = buffered_ports(self.template.graph, memory.line) if isinstance(memory, TimedMemory) else {}
        if not buffers:
            return apart
        own = [
            (one, _one_of(inputs[0], candidate), _OneCandidate(addresses.flows, candidate)) for candidate, one in enumerate(apart)
        ]
        line = request_bytes(memory)
        return [buffered(one, node, addresses, first, flows, line, self.array_bytes, buffers) for one, first, flows in own]


def _apart(port: PortLines, batch: LaneBatch) -> list[PortLines]:
    """Return the port as one for each candidate, given one whose numbers are arrays over the candidates."""
    names = "lines", "jumps", "dealt", "divided", "at_once", "in_list", "in_turn"
    numbers: list[Number] = [getattr(port, name) for name in names]
    if not any(isinstance(number, np.ndarray) for number in numbers):
        return [port] * len(batch.candidates)
    columns = zip(*map(batch.each, numbers), strict=True)
    return [port._replace(**dict(zip(names, own, strict=True))) for own in columns]


def _one_of(flow: Flow, candidate: int) -> Flow:
    """Return the flow of one candidate, given one whose numbers are arrays over the candidates."""

    def own(number: Number) -> Number:
        return float(number[candidate]) if isinstance(number, np.ndarray) else number

    return Flow(tuple(map(own, flow.lists)), tuple(map(own, flow.filled)), *map(own, (flow.elements, flow.absent, flow.read)))


@dataclass(frozen=True, slots=True, eq=False)
class _OneCandidate(Mapping[n.Port, Flow]):
    """The flows of the streams for one candidate."""

    flows: Mapping[n.Port, Flow]
    candidate: int

    def __getitem__(self, port: n.Port) -> Flow:
        return _one_of(self.flows[port], self.candidate)

    def __iter__(self) -> Iterator[n.Port]:
        return iter(self.flows)

    def __len__(self) -> int:
        return len(self.flows)


@dataclass(frozen=True, slots=True, eq=False)
class _BusiestFlows(Mapping[n.Port, Flow]):
    """The flow of each stream of a template, as it is in the busiest lane."""

    template: LaneTemplate
    streams: Sequence[NodeStreams]
    batch: LaneBatch

    def __getitem__(self, port: n.Port) -> Flow:
        at = self.template.places.get(self.template.first[port.node])
        if at is None:
            raise Uncountable
        own = self.streams[at]
        place = len(own.inputs) + port.output
        return self.batch.busiest(own.outputs[port.output], own.axes[place])

    def __iter__(self) -> Iterator[n.Port]:
        return (n.Port(each.node.name, k) for each in self.template.nodes for k in range(len(each.outputs)))

    def __len__(self) -> int:
        return sum(len(each.outputs) for each in self.template.nodes)
