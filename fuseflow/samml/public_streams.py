"""The streams that each node of a graph reads once the graph is written in the public schema.

Public messages and fuseflow's nodes read different streams in places: a public repeat is signalled by references or values, a
locate passes references on, and a join has its coordinates beside every payload. Writers of the schema and counts of broadcasts
use this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from fuseflow.samml import nodes as n
from fuseflow.samml.node_check import StreamFacts


@dataclass(slots=True)
class PublicStreams:
    """The public form of the streams of one graph, given its facts.

    `reads` has, for each input of a node, the streams that the messages of the node read for it. `passing` has, for the name of a locate,
    the join that its message stands for, too.
    """

    graph: n.Graph
    facts: Mapping[n.Port, StreamFacts]
    reads: dict[n.Edge, tuple[n.Port, ...]] = field(init=False)
    passing: dict[str, n.Join] = field(init=False)

    def __post_init__(self) -> None:
        by_name = self.graph.by_name
        joins = [node for node in self.graph.nodes if isinstance(node, n.Join)]
        self.passing = {locate.name: join for join in joins if self.passes_on(locate := by_name.get(located(join)), join)}
        read_by = self.graph.readers()
        self.reads = {}
        for node in self.graph.nodes:
            streams: list[tuple[n.Port, ...]] = [(port,) for port in node.inputs]
            match node:
                case n.Repeat(inputs=(_, signal)):
                    streams[1] = (self.companion(signal, "ref", "val") or signal,)
                case n.Locate(inputs=(crd,)):
                    passed = self.passing[node.name].inputs[1] if node.name in self.passing else self.companion(crd, "ref")
                    streams[0] += () if passed is None else (passed,)
                case n.Join() if self.passing.get(located(node)) is node:
                    streams = [(), ()]
                case n.Join():
                    for crd_input, payloads in node.sides():
                        streams[crd_input] *= max(len(payloads), 1)
                case n.Drop() if is_coordinate_drop(node) and n.Port(node.name, 2) not in read_by:
                    streams[2] = ()
            self.reads |= {n.Edge(node.name, k): ports for k, ports in enumerate(streams)}

    def companion(self, port: n.Port, *kinds: n.Kind) -> n.Port | None:
        """Return the stream of one of these kinds that the node of `port` emits together with the coordinates there, or None."""
        facts = self.facts
        if facts[port].type.kind != "crd":
            return None
        outputs = self.graph.by_name[port.node].ports
        companions = [p for p in outputs if facts[p].type.kind in kinds and facts[p].shape is facts[port].shape]
        return min(companions, key=lambda p: (facts[p].nullable, facts[p].type.kind, p.output), default=None)

    def broadcasts(self) -> dict[n.Edge, int]:
        """Return for each input the broadcasts (0 or 1) that a token passes: one if its stream has several readers."""
        counts = Counter(port for ports in self.reads.values() for port in ports)
        passed = {edge: max((int(counts[port] > 1) for port in ports), default=0) for edge, ports in self.reads.items()}
        for locate, join in self.passing.items():
            passed |= {n.Edge(join.name, k): passed[n.Edge(locate, 0)] for k in range(len(join.inputs))}
        return passed

    def passes_on(self, locate: n.Node | None, join: n.Join) -> TypeGuard[n.Locate]:
        """Return whether a join emits the coordinates and references that the public message of a locate passes on."""
        return (
            isinstance(locate, n.Locate)
            and (join.kind, join.payloads) == ("intersect", (1,))
            and locate.inputs == join.inputs[:1]
            and self.facts[join.inputs[1]].type.kind == "ref"
            and any(port.node == join.name for port in self.graph.readers())
        )


THROUGH = ".through"
"""The suffix that turns the name of a locate into the name of the join that passes its inputs on, as a public locate does."""


def located(join: n.Join) -> str:
    """Return the name of the locate whose inputs a join passes on, or the name of the join if it is no such join."""
    return join.name.removesuffix(THROUGH)


def is_coordinate_drop(node: n.Drop) -> bool:
    """Return whether a drop depends on nothing but two levels of coordinates."""
    return len(node.inputs) == 3 and node.inputs[1] == node.inputs[2] and node.value is None
