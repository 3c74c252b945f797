"""Traces the references that a node reads at back through a graph, to the scans, locates and forks that decide where it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import assert_never

from fuseflow.estimate.buffer_reuse import Loop, OwnLoop
from fuseflow.estimate.stream_flow import Flow, Number, Truth, choose
from fuseflow.samml import nodes as n
from fuseflow.samml.graph import stream_bounds

Lookup = n.Scan | n.Load
"""A node that reads an array at the positions that the references on its input name."""


class Addresses:
    """Traces references through a graph, to what decides where a node reads. `flow_of` returns the flow of a stream, and `lanes_of` is the
    number of lanes of each fork, by name."""

    def __init__(self, graph: n.Graph, flow_of: Callable[[n.Port], Flow], lanes_of: Mapping[str, Number]) -> None:
        self.graph, self.flow_of, self.lanes_of = graph, flow_of, lanes_of
        self.by_name = graph.by_name
        self.types = graph.types()
        self.bounds = stream_bounds(graph)
        self._forks: dict[n.Port, dict[str, Truth]] = {}

    def lookup(self, node: Lookup) -> Lookup | None:
        """Return the node whose references decide at which positions of its tensor `node` reads.

        This is `node` itself, or a scan above it whose fibers it reads one after the other. None means that it reads the whole
        tensor once, from start to end.
        """
        while node.sequential:
            producer = self.by_name[node.inputs[0].node]
            if isinstance(producer, n.Root):
                return None
            if not isinstance(producer, n.Scan) or producer.tensor != node.tensor:
                break
            node = producer
        return node

    def varying_level(self, node: Lookup, level: int) -> int:
        """Return the level of a tensor whose coordinate changes from one reference in a list to the next, where the references of
        `node` lead to elements of `level`. It is -1 if all references of a list are equal."""
        port, depth = node.inputs[0], self.types[node.inputs[0]].depth
        while level >= 0:
            port = self._origin(port)
            producer = self.by_name[port.node]
            if isinstance(producer, n.Scan):
                return level if self.types[port].depth == depth else -1
            if not isinstance(producer, n.Locate):
                return -1 if isinstance(producer, n.Repeat | n.Root) else level
            if not isinstance(self.by_name[self._origin(producer.inputs[0]).node], n.Repeat):
                return level
            if len(producer.inputs) < 2:
                return -1
            port, level = producer.inputs[1], level - 1
        return -1

    def _origin(self, port: n.Port) -> n.Port:
        """Return the stream whose elements a stream has, before nodes that only choose among elements or deal them."""
        while True:
            node = self.by_name[port.node]
            match node:
                case n.Join() | n.Drop():
                    carried = node.carries()[port.output]
                    if not carried:
                        return port
                    port = node.inputs[carried[0]]
                case n.Align():
                    port = node.inputs[2]
                case n.Fork() | n.Merge() | n.Link():
                    port = node.inputs[0]
                case n.Root() | n.Scan() | n.Range() | n.Repeat() | n.Pointwise() | n.Reduce() | n.Accumulate():
                    return port
                case n.Permute() | n.Select() | n.Flatten() | n.SplitLevel() | n.TensorWriter():
                    return port
                case unknown:
                    assert_never(unknown)

    def lanes(self, node: Lookup) -> tuple[Number, Number]:
        """Return to how many lanes an innermost list of a node's references is dealt, and the product of the lanes of all forks
        that may decide which references the node gets."""
        port = node.inputs[0]
        fork = self._dealing(port)
        deciding = (choose(decides, self.lanes_of[name], 1) for name, decides in self._deciding(port).items())
        return self.lanes_of[fork] if fork else 1, prod(deciding)

    def _dealing(self, port: n.Port) -> str:
        """Return the name of the fork that deals the references of a stream within their innermost lists, empty if none does."""
        while isinstance(producer := self.by_name[port.node], n.Fork | n.Join | n.Locate | n.Link):
            if isinstance(producer, n.Fork):
                return producer.name
            if isinstance(producer, n.Locate):
                port = producer.inputs[0]
            elif carried := producer.carries()[port.output]:
                port = producer.inputs[carried[0]]
            else:
                break
        return ""

    def loops(self, node: Lookup, array_lines: float) -> tuple[Loop, ...]:
        """Return the loops around the references that `node` looks up, outermost first. The array has `array_lines` lines."""
        decl, port = self.graph.declared[node.tensor], node.inputs[0]
        level = node.level - 1 if isinstance(node, n.Scan) else decl.format.rank - 1
        levels = self._own_levels(port, level)
        sizes = [decl.size(p) for p in range(level + 1)]
        strides = [array_lines / max(1, prod(sizes[: p + 1])) for p in range(level + 1)]
        own = {depth: OwnLoop(sizes[p], strides[p], strides[level]) for depth, p in levels.items() if 0 <= p <= level}
        return tuple(own.get(depth) for depth in range(1, self.types[port].depth + 1))

    def _own_levels(self, port: n.Port, level: int) -> dict[int, int]:
        """Return, for each depth at which references to elements of `level` change, along which level of the tensor they do."""
        port = self._origin(port)
        node, depth = self.by_name[port.node], self.types[port].depth
        match node:
            case n.Root():
                return {}
            case n.Repeat():
                return self._own_levels(node.inputs[0], level)
            case n.Scan():
                return {**self._own_levels(node.inputs[0], level - 1), depth: level}
            case n.Locate():
                above = self._own_levels(node.inputs[1], level - 1) if len(node.inputs) > 1 else {}
                return {**above, self._coordinate_depth(node.inputs[0]): level}
            case n.Join() | n.Drop() | n.Align() | n.Fork() | n.Merge():
                # What joins or deals references does not say where they change, so they are taken to change at every depth.
                return {at: min(at, level) for at in range(1, depth + 1)}
            case n.Range() | n.Pointwise() | n.Reduce() | n.Accumulate() | n.Permute() | n.Select() | n.Flatten():
                raise AssertionError(f"{node.op} `{node.name}` gives no references")
            case n.SplitLevel() | n.TensorWriter():
                raise AssertionError(f"{node.op} `{node.name}` gives no references")
            case unknown:
                assert_never(unknown)

    def _coordinate_depth(self, port: n.Port) -> int:
        """Return the depth at which a node made the coordinates of a stream. Repeats further inside only repeat them."""
        port = self._origin(port)
        while isinstance(node := self.by_name[port.node], n.Repeat):
            port = self._origin(node.inputs[0])
        return self.types[port].depth

    def _deciding(self, port: n.Port) -> dict[str, Truth]:
        """Return, for each fork before a stream, whether the lane that it deals to decides which elements the stream has."""
        if port not in self._forks:
            node = self.by_name[port.node]
            match node:
                case n.Fork():
                    forks = {**self._deciding(node.inputs[0]), node.name: True}
                case n.Merge():  # a stream of all its lanes
                    dealt = self._deciding_any(node.inputs)
                    forks = {name: decides & (self.lanes_of[name] != len(node.inputs)) for name, decides in dealt.items()}
                case n.Repeat():
                    forks = self._deciding(node.inputs[0])
                case n.Join():
                    carried = self._deciding_any(node.inputs[k] for k in node.carries()[port.output])
                    told = self._deciding_any(node.inputs[crd] for crd, _ in node.sides())
                    joined = self.flow_of(n.Port(node.name))
                    # Which coordinates there are tells lanes apart where lists lack some.
                    lacks: Truth = joined.elements < joined.inner * self.bounds[n.Port(node.name)]
                    forks = {name: carried.get(name, False) | (told.get(name, False) & lacks) for name in {**carried, **told}}
                case n.Root() | n.Scan() | n.Range() | n.Align() | n.Pointwise() | n.Reduce() | n.Accumulate():
                    forks = self._deciding_any(node.inputs)
                case n.Permute() | n.Drop() | n.Select() | n.Flatten() | n.SplitLevel() | n.TensorWriter():
                    forks = self._deciding_any(node.inputs)
                case unknown:
                    assert_never(unknown)
            self._forks[port] = forks
        return self._forks[port]

    def _deciding_any(self, ports: Iterable[n.Port]) -> dict[str, Truth]:
        """Return, for each fork before any of some streams, whether its lane decides which elements one of them has."""
        forks: dict[str, Truth] = {}
        for port in ports:
            for name, decides in self._deciding(port).items():
                forks[name] = forks.get(name, False) | decides
        return forks
