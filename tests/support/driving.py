"""Drive one node with given streams, and see what it makes and when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseflow.machine.timing import NodeTiming
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, Stop, Stream, parse
from fuseflow.sim import Machine
from fuseflow.sim.outcome.output_tensors import WriterStream
from fuseflow.sim.reference.execute import RULES, Network, add_processes, run_network
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.timed_process import BoundedFifo, Fifo, Item, Slots, make_output
from fuseflow.tensors import Tensor


@dataclass
class Driven:
    """The output streams, with the cycles of the firings that made their tokens; all firings; what was written."""

    outputs: list[list[Item]]
    firings: int
    last: int
    written: dict[str, WriterStream]
    latency: int

    @property
    def tokens(self) -> list[Stream]:
        return [[token for token, _ in items] for items in self.outputs]

    @property
    def fired(self) -> list[str]:
        """Every stream as text: `token@cycle of the firing`."""
        return [" ".join(f"{show(token)}@{cycle - self.latency}" for token, cycle in items) for items in self.outputs]


def show(token: object) -> str:
    return f"{token:g}" if isinstance(token, float) else str(token)


def timed(stream: str | Sequence[object]) -> list[Item]:
    """`1@3 S0 D@9`: visible from cycle 3, 4 and 9. A stream of tokens alone: one a cycle from 0 on."""
    if not isinstance(stream, str):
        return [(token, k) for k, token in enumerate(stream)]
    items: list[Item] = []
    for word in stream.split():
        text, _, cycle = word.partition("@")
        items.append((parse(text)[0], int(cycle) if cycle else (items[-1][1] + 1 if items else 0)))
    return items


def depth_of(items: Sequence[Item]) -> int:
    return max((token.high + 1 for token, _ in items if token.__class__ is Stop), default=0)


def drive(
    node: n.Node,
    *streams: str | Sequence[object],
    tensors: Mapping[str, Tensor] | None = None,
    declared: Sequence[n.TensorDecl] = (),
    latency: int = 1,
    interval: int = 1,
    rules: Mapping[type[n.Node], Rule] = RULES,
    depths: Sequence[int] = (),
) -> Driven:
    """Run `node` alone on `streams`. Its outputs are unbounded, or have FIFOs of these depths that nobody reads."""
    items = [timed(stream) for stream in streams]
    inputs = tuple(Fifo(n.Edge(node.name, k), stream) for k, stream in enumerate(items))
    types = tuple(n.StreamType("crd", depth_of(stream)) for stream in items)
    timing = NodeTiming(latency, interval, interval)
    network = Network(written={decl.name: WriterStream() for decl in declared})
    fifos = [[BoundedFifo(n.Edge("reader", k), depth)] for k, depth in enumerate(depths)] or [[] for _ in node.port_names()]
    outputs = tuple(make_output(latency, readers) for readers in fifos)
    recorded = [out.record() for out in outputs]
    table = {decl.name: decl for decl in declared}
    add_processes(
        network,
        NodeContext(node, inputs, outputs, types, timing, Machine(name="ideal"), table, tensors or {}, network.written, "f64"),
        rules,
    )
    stuck = run_network(network)
    for waits in (process.waits for process in stuck):
        assert not isinstance(waits, Slots), f"waits for a slot of output {waits.edge.input}"
        raise AssertionError(f"waits for input {[fifo is waits for fifo in inputs].index(True)}")
    assert not any(inputs), "tokens left"
    assert all(stream[-1][0] is D for stream in recorded)
    firings, last = sum(p.firings for p in network.processes), max(p.last for p in network.processes)
    return Driven(recorded, firings, last, network.written, latency)


def inputs_of(count: int) -> tuple[n.Port, ...]:
    """Inputs for a node that is driven alone."""
    return tuple(n.Port(f"in{k}") for k in range(count))


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
