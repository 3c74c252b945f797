"""A rewriter of a graph, node by node. It proves facts about the new streams as it goes, so that rules can ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from fuseflow.samml.auxiliary_tensors import dense_dimension
from fuseflow.samml.node_check import StreamFacts
from fuseflow.samml.nodes import Edge, Graph, Join, Port, Primitive, Range, Scan, TensorUser, TensorWriter, upstream
from fuseflow.samml.stream_alignment import StreamShape, holds
from fuseflow.samml.verify import StreamProver

Side: TypeAlias = tuple[Port, tuple[Port, ...]]
"""A side of a join: its coordinates and its payloads."""


class GraphRewriter:
    """A rewriter of a verified graph without FIFO depths. `nodes` has the nodes that were put so far; a rule reads ports of these nodes."""

    def __init__(self, graph: Graph) -> None:
        vectors = {t.name: t for t in (dense_dimension(node.size) for node in graph.nodes if isinstance(node, Range))}
        self.graph = replace(graph, tensors=(*graph.tensors, *vectors.values()))
        self.nodes: dict[str, Primitive] = {}
        self.sources: dict[str, str] = {}
        """The node of the graph that each new node is for."""
        self.readers: Mapping[Port, Sequence[Edge]] = graph.readers()
        self.truth_values: set[Port] = set()
        """The streams that are known to hold 0 and 1 alone."""
        self._before = graph.by_name
        self._source = ""
        self.prover = StreamProver(self.graph)
        """It has the facts of all streams that were put."""
        self._payloads: dict[StreamShape, list[Port]] = {}
        self._scans: dict[tuple[Port, str, int], tuple[Port, ...]] = {}

    def run(self, rules: Mapping[type[Primitive], Rule]) -> Graph:
        """Return the graph with each node replaced by its rule. A node stays if it has no rule, or if its rule returns None."""
        moved: dict[Port, Port] = {}
        for node in self.graph.nodes:
            rule, self._source = rules.get(type(node)), node.name
            here = replace(node, inputs=tuple(moved[port] for port in node.inputs))
            outputs = rule(self, here) if rule else None
            for k, port in enumerate(self.put(here) if outputs is None else outputs):
                moved[Port(node.name, k)] = port
        needed = upstream(self.nodes, (p for node in self.nodes.values() if isinstance(node, TensorWriter) for p in node.inputs))
        nodes = tuple(node for node in self.nodes.values() if node.name in needed or isinstance(node, TensorWriter))
        used = {node.tensor for node in nodes if isinstance(node, TensorUser)}
        used |= {t.like for t in self.graph.tensors if t.name in used}
        return replace(self.graph, nodes=nodes, tensors=tuple(t for t in self.graph.tensors if t.name in used))

    # What rules use ------------------------------------------------------------------------------------------------------------

    def put(self, node: Primitive) -> tuple[Port, ...]:
        """Add a node, with a number if its name is taken, and return its outputs."""
        node = replace(node, name=self._fresh(node.name))
        self.nodes[node.name] = node
        self.sources[node.name] = self._source
        self.prover.visit(node)
        outputs = node.ports
        for port in outputs:
            if self.facts(port).type.kind != "crd" and not self.facts(port).nullable:
                self._payloads.setdefault(self.facts(port).shape, []).append(port)
        return outputs

    def _fresh(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self.nodes or (candidate in self._before and candidate != name):
            count += 1
            candidate = f"{name}'{count}"
        return candidate

    def facts(self, port: Port) -> StreamFacts:
        return self.prover.facts[port]

    def payload(self, crd: Port) -> Port | None:
        """Return a stream of references or values that belongs to these coordinates and is never `N`, from the same node if it
        makes one. None if there is none."""
        beside = self._payloads.get(self.facts(crd).shape, [])
        return next((port for port in beside if port.node == crd.node), beside[0] if beside else None)

    def scan(self, ref: Port, tensor: str, level: int, name: str) -> tuple[Port, ...]:
        """Return the coordinates and references of a level below the references `ref`. It is scanned once."""
        key = ref, tensor, level
        if key not in self._scans:
            self._scans[key] = self.put(Scan(name, (ref,), tensor, level))
        return self._scans[key]

    def holds(self, outer: Port, inner: Port) -> bool:
        """Return whether a coordinate stream provably has all coordinates of another one."""
        return holds(self.facts(outer).shape, self.facts(inner).shape, self.facts(inner).bound)

    def join(self, name: str, kind: str, sides: Sequence[Side]) -> tuple[Port, ...]:
        """Join some sides. A side without a payload gets one, if there is any. Return the coordinates and the payloads of the
        sides, without those that were added."""
        inputs: list[Port] = []
        counts: list[int] = []
        outputs = [0]
        for crd, payloads in sides:
            beside = payloads or tuple(port for port in (self.payload(crd),) if port is not None)
            outputs += range(sum(counts) + 1, sum(counts) + 1 + len(payloads))
            inputs += [crd, *beside]
            counts.append(len(beside))
        made = self.put(Join(name, tuple(inputs), kind, tuple(counts)))  # type: ignore[arg-type]
        return tuple(made[k] for k in outputs)


Rule: TypeAlias = Callable[[GraphRewriter, Any], "Sequence[Port] | None"]
"""A function that rewrites a node: it returns the streams that replace its outputs, or None if the node stays. Its inputs are
ports of new nodes."""
