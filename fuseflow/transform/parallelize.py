"""`parallelize` deals the loops of an index over lanes, each with scanners, loads, operators and reductions of its own.

Precondition: a verified graph, and the indices of its loops. A stream that has the index is dealt, coordinate by coordinate in turn;
one that lacks it goes to all lanes. A node runs in every lane if the index encloses what it works on:

    below the index (or on its own elements)     in every lane
    scans, ranges and joins that make the level  once: they emit the coordinates that are dealt
    a reduction over the index or outside it     in every lane, then a tree that folds the lanes
    everything else, writes among it             once, of the lanes merged in the order in which they were dealt

A dense result whose values are in the lanes of an index is written in every lane of that index, if the `writers` ask for it. Lanes of
further indices are merged before its writers. Each lane must have all coordinates below its own then. Where it may lack some, as behind a
sum that is kept in a workspace, a range emits them and an align moves the values there: missing elements get the implicit value.

Effect: the graph writes the same tensors, but for the order in which numbers are folded; nodes outside the lanes keep their
names, and nodes of lane k of index i are called `NAME/ik`. Nothing changes for one lane.

A stage, which is the nest of one producer, may have lanes of its own. Then only its nodes run in these lanes, and all others
count as outside of them. So a stream is forked where it enters the stage, and merged where it leaves it: a reader outside the
stage sees the stream that it would see without lanes. A stage of n nodes with p lanes becomes p * n nodes, less for nodes that
run once. In addition, each stream that enters has a fork, or p aligns below coordinates that are dealt, and each stream that
leaves has a merge. Stages with equally many lanes of an index are dealt together, so that nothing is merged between them.

    A_k = scan(A_i.ref) A.1
    ->  fork_i_A_i_ref = fork(A_i.ref);  A_k/i0 = scan(fork_i_A_i_ref.lane0) A.1;  A_k/i1 = ...;  merge_i_A_k_crd = merge(...)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar, assert_never

from fuseflow.errors import ScheduleError
from fuseflow.ops import REDUCERS
from fuseflow.samml.node import TensorWriter
from fuseflow.samml.nodes import (
    Accumulate,
    Align,
    Alu,
    Fork,
    Graph,
    Join,
    Load,
    Merge,
    Operand,
    Port,
    Primitive,
    Range,
    Reduce,
    Repeat,
    Root,
    Scan,
    WriteLevel,
    WriteValues,
    stream_name,
)
from fuseflow.samml.stream_alignment import StreamShape, lists_are_full_or_empty
from fuseflow.samml.verify import proved
from fuseflow.samml.writers import LaneWriter, lane_writer
from fuseflow.transform.lane_request import LaneRequest, Writers, refuse_too_many
from fuseflow.transform.stream_levels import Loops, common_levels, stream_levels

NO_STAGES: Mapping[str, str] = {}

Placement: TypeAlias = Literal["once", "lanes", "fold"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LaneGraph:
    """A graph with lanes.

    `loops` has the indices of its scans and ranges, and `stages` the stage that each node is in. `places` has, by node, the loop
    and the number of each lane that the node is in, outermost first: the loop is `i`, or `T.i` if only stage T has the lanes.
    Nodes outside all lanes are not in it. Nodes that deal and gather are in no stage: if lanes of another loop had a fork and not
    its merge, each fork would deal in another turn.
    """

    graph: Graph
    loops: Loops
    places: Mapping[str, tuple[tuple[str, int], ...]]
    stages: Mapping[str, str] = field(default_factory=dict)


def parallelize(
    graph: Graph,
    loops: Loops,
    lanes: Mapping[str, int],
    stages: Mapping[str, str] = NO_STAGES,
    own: Mapping[tuple[str, str], int] | None = None,
    writers: Writers = "once",
) -> LaneGraph:
    """Return the graph with each index dealt over its lanes, in order: lanes of the second index are inside those of the first.

    `loops` has the indices of scans and ranges, and `stages` the stage of each node, by name. `own` has the number of lanes of an
    index in one stage; `lanes` has the number for all other stages. An index that only stages deal has one lane in `lanes`, at
    its position in the order. `writers` says whether dense results are written in lanes.

    Raises `ScheduleError` if two of the indices share a loop, for more lanes than a graph can hold, and for a stage that has
    nothing to be dealt.
    """
    request = LaneRequest(lanes, {} if own is None else own, writers)
    request.check(graph, loops, stages)
    result = LaneGraph(graph, loops, {}, stages)
    for index in lanes:
        for count in request.counts(index):
            result = _dealt(result, request, index, count)
    used = {loop for place in result.places.values() for loop, _ in place}
    for (stage, index), count in request.own.items():
        if count > 1 and request.loop(stage, index) not in used:
            raise ScheduleError(
                f"stage `{stage}` of graph `{graph.name}` has nothing to be dealt over `{index}`: "
                "what it has there makes the coordinates, or needs all of them"
            )
    return result


def _dealt(before: LaneGraph, request: LaneRequest, index: str, count: int) -> LaneGraph:
    """Return the graph with an index dealt over `count` lanes, in the stages that ask for that."""
    nodes = {node.name: _stage(before, request, node) for node in before.graph.nodes}
    loops = {name: request.loop(stage, index) for name, stage in nodes.items() if request.count(stage, index) == count}
    refuse_too_many(before.graph, index, count, len(loops))
    return _Dealer(before, index, count, loops, request.writers).run()


def _stage(before: LaneGraph, request: LaneRequest, node: Primitive) -> str:
    """Return the stage of a node, or "". If results are written in lanes, writers are in the stage that makes the values."""
    if request.writers != "once" and isinstance(node, WriteLevel | WriteValues):
        return before.stages.get(_values(before.graph, node.tensor).node, "")
    return before.stages.get(node.name, "")


def _values(graph: Graph, tensor: str) -> Port:
    """Return the stream of values that is written to a tensor."""
    return next(node.inputs[0] for node in graph.nodes if isinstance(node, WriteValues) and node.tensor == tensor)


class _Dealer:
    """A rewriter of a graph for one index, node by node. For a stream of the original graph, `whole` returns the stream outside
    the lanes and `dealt` the stream of each lane; both are made on demand.

    `inside` has the nodes that may run in lanes, each with the name of the lanes. All others run once. Dense results are written
    in lanes as the `writers` say: `written` has the streams that each lane writes, by the stream that would be written once.
    """

    def __init__(self, before: LaneGraph, index: str, count: int, inside: Mapping[str, str], writers: Writers) -> None:
        self.index, self.count, self.inside, self.writers = index, count, inside, writers
        names = set(inside.values())
        self.loop = names.pop() if len(names) == 1 else index
        self.stages = dict(before.stages)
        self.graph = before.graph
        self.levels = stream_levels(before.graph, before.loops)
        self.types = before.graph.types()
        self.by_name = before.graph.by_name
        self.nodes: dict[str, Primitive] = {}
        self.loops = dict(before.loops)
        self.places = dict(before.places)
        self.wholes: dict[Port, Port] = {}
        self.lanes: dict[Port, tuple[Port, ...]] = {}
        self.written: dict[str, Mapping[Port, tuple[Port, ...]]] = {}
        self.shapes: dict[Port, StreamShape] = {}
        self.derivations: Mapping[StreamShape, tuple[Hashable, ...]] = {}
        self.recovered: dict[StreamShape, Port] = {}  # coordinates that no node of the graph before gives
        self.forks: dict[StreamShape, tuple[Port, ...]] = {}  # and the coordinates of every lane

    def run(self) -> LaneGraph:
        for node in self.graph.nodes:
            way = self.way(node)
            if way == "once":
                self.put(replace(node, inputs=tuple(map(self.whole, node.inputs))))
                self.wholes |= {p: p for p in node.ports}
                continue
            lanes = self.copies(node)
            if way == "lanes":
                self.lanes |= {p: tuple(Port(lane, p.output) for lane in lanes) for p in node.ports}
            else:
                self.wholes |= zip(node.ports, self.fold(node, lanes), strict=True)
        nodes = tuple(self.nodes.values())
        kept = {node.name for node in nodes}
        return LaneGraph(
            replace(self.graph, nodes=tuple(map(self.accessed, nodes)), fiber_fifos=(), depths=()),
            {name: indices for name, indices in self.loops.items() if name in kept},
            {name: place for name, place in self.places.items() if name in kept},
            {name: stage for name, stage in self.stages.items() if name in kept},
        )

    # Where a node runs ---------------------------------------------------------------------------------------------------------

    def at(self, port: Port) -> int | None:
        """Return the level of a stream that runs over the index, 0 being the outermost, or None if it lacks the index."""
        return next((at for at, indices in enumerate(self.levels[port]) if self.index in indices), None)

    def way(self, node: Primitive) -> Placement:
        """Return where a node runs: once, in lanes, or in lanes and then a fold. Its grain and the index's level decide."""
        if node.name not in self.inside:
            return "once"
        shared = common_levels(self.levels[p] for p in node.inputs)
        at = next((at for at, indices in enumerate(shared) if self.index in indices), None)
        if at is None or any(self.at(p) != (at if self.types[p].depth > at else None) for p in node.inputs):
            return "once"
        outer = self.types[node.inputs[0]].depth - 1
        match node.grain:
            case "tensor":
                return "lanes" if self.is_written_in_lanes(node) else "once"
            case "fiber":
                return "lanes" if at < outer - (node.levels if isinstance(node, Merge) else 0) else "once"
            case "fold":
                return "fold" if at >= outer else "lanes"
            case "element":
                return "lanes"
            case unknown:
                assert_never(unknown)

    def is_written_in_lanes(self, node: Primitive) -> bool:
        """Return whether each lane writes its part of the tensor of a node. The values must be in the lanes by then. The tensor
        must have all coordinates, or, if the missing ones can be filled in, all that are dealt."""
        if self.writers == "once" or isinstance(node, LaneWriter) or not isinstance(node, TensorWriter):
            return False
        decl, values = self.graph.declared[node.tensor], _values(self.graph, node.tensor)
        if (
            decl.like
            or values not in self.lanes
            or values in self.wholes
            or any(level.text != "dense" for level in decl.format.levels)
        ):
            return False
        self.prove()
        shape, at = self.shapes[values], self.at(values)
        if shape.covers(decl.level_sizes):
            return True
        assert at is not None
        below = decl.format.rank - 1 - at
        dealt = shape.ancestor(below)
        may_fill = self.writers == "lanes" or all(lists_are_full_or_empty(shape.ancestor(up)) for up in range(below))
        return may_fill and dealt is not None and dealt.covers(decl.level_sizes[: at + 1])

    def filled(self, tensor: str) -> Mapping[Port, tuple[Port, ...]]:
        """Return the streams of a tensor that each lane writes, by the stream that would be written once. Each has all
        coordinates below the coordinates that were dealt."""
        if tensor not in self.written:
            decl, values = self.graph.declared[tensor], _values(self.graph, tensor)
            by_level = {n.level: n.inputs[0] for n in self.graph.nodes if isinstance(n, WriteLevel) and n.tensor == tensor}
            streams = (*(by_level[p] for p in range(decl.format.rank)), values)
            whole = self.shapes[values].covers(decl.level_sizes)
            lanes = [self.fill(tensor, streams, k) for k in range(0 if whole else self.count)]
            self.written[tensor] = {p: tuple(lane[at] for lane in lanes) for at, p in enumerate(streams)} if lanes else {}
        return self.written[tensor]

    def fill(self, tensor: str, streams: Sequence[Port], lane: int) -> tuple[Port, ...]:
        """Return the coordinates of each level of a tensor, and its values, in one lane: all below those dealt to it."""
        *_, values = streams
        decl, dealt = self.graph.declared[tensor], self.at(values)
        assert dealt is not None
        own = [self.whole(p) if at < dealt else self.dealt(p)[lane] for at, p in enumerate(streams)]

        def put(node: Primitive, *indices: str) -> Port:
            *_, port = self.put(replace(node, name=f"{node.name}/{self.index}{lane}"), like=values, lane=lane)
            if values.node in self.stages:
                self.stages[port.node] = self.stages[values.node]
            if indices:
                self.loops[port.node] = frozenset(indices)
            return port

        innermost = decl.format.rank - 1
        ref = Port(next(node.name for node in self.graph.nodes if isinstance(node, Root)))
        for at, size in enumerate(decl.level_sizes):
            if at > dealt:
                old = own[at]
                own[at] = put(Range(f"fill_{tensor}_range{at}", (ref,), size), *self.levels[streams[at]][at])
                for below in range(at + 1, innermost + 1):
                    own[below] = put(Align(f"fill_{tensor}_align{at}", (old, own[at], own[below])))
                if at < innermost:
                    own[-1] = put(Align(f"fill_{tensor}_align{at}", (old, own[at], own[-1])))
                else:
                    own[-1] = put(Join(f"fill_{tensor}_join", (own[at], old, own[-1]), "left", (0, 1)))
            if at < innermost:
                ref = put(Repeat(f"fill_{tensor}_rep{at}", (ref, own[at])))
        own[-1] = put(Alu(f"fill_{tensor}", (own[-1],), "copy", (Operand(decl.fill),)))
        return tuple(own)

    # Streams -------------------------------------------------------------------------------------------------------------------

    def whole(self, port: Port) -> Port:
        """Return a stream as it is outside the lanes, merged from them if need be."""
        if port not in self.wholes:
            at = self.at(port)
            assert at is not None
            merge = Merge(self.named("merge", port), self.lanes[port], self.types[port].depth - 1 - at)
            self.wholes[port] = self.put(merge, like=port)[0]
        return self.wholes[port]

    def dealt(self, port: Port) -> tuple[Port, ...]:
        """Return a stream as it is in every lane. Without the index, it is the same in all."""
        at = self.at(port)
        if at is None:
            return (self.whole(port),) * self.count
        if port not in self.lanes:
            self.lanes[port] = self.spread(port, at)
        return self.lanes[port]

    def spread(self, port: Port, at: int) -> tuple[Port, ...]:
        """Deal the elements of a whole stream if its last level `at` has the index, else the lists below each coordinate."""
        if at == self.types[port].depth - 1:
            return self.put(Fork(self.named("fork", port), (self.whole(port),), self.count), like=port)
        name = self.named("align", port)
        old, dealt = self.coordinates(port, at)
        return tuple(
            self.put(Align(f"{name}/{self.index}{k}", (old, new, self.whole(port))), like=port, lane=k)[0]
            for k, new in enumerate(dealt)
        )

    def coordinates(self, port: Port, at: int) -> tuple[Port, tuple[Port, ...]]:
        """Return the coordinate stream of level `at` of a stream, and the coordinate stream of every lane. A stream of another
        index may have the same coordinates, if both are full and of equal size."""
        self.prove()
        above = self.shapes[port].ancestor(self.types[port].depth - 1 - at)
        assert above is not None
        own = self.ancestor(port, at)
        candidates = (p for p in self.of_shape(above) if self.at(p) == at)
        crd = own if own and self.shapes[own] is above and self.at(own) == at else next(candidates, None)
        if crd is not None:
            return self.whole(crd), self.dealt(crd)
        if above not in self.forks:
            fork = Fork(self.named("fork", port), (self.carried(above, port),), self.count)
            self.forks[above] = self.put(fork, like=port)
        return self.carried(above, port), self.forks[above]

    def prove(self) -> None:
        """Prove the shapes of the streams of the graph, unless that was done."""
        if not self.shapes:
            prover = proved(self.graph)
            self.shapes, self.derivations = {p: s.shape for p, s in prover.facts.items()}, prover.derivations

    def ancestor(self, port: Port, at: int) -> Port | None:
        """Return the coordinate stream of level `at` from which a stream is made, None if there is none. It is not enough that
        both are full: lanes of another index may be folded later, and full streams differ then."""
        while True:
            node = self.by_name[port.node]
            outputs = (p for p in node.ports if self.types[p].kind == "crd" and self.types[p].depth == at + 1)
            if (crd := next(outputs, None)) is not None:
                return crd
            above = [p for p in node.inputs if self.types[p].depth > at]
            match node:
                case Align() if self.types[node.inputs[1]].depth > at:
                    above = [node.inputs[1]]
                case Repeat():
                    above = [node.inputs[1]]
            if not above:
                return None
            port = above[0]

    def of_shape(self, wanted: StreamShape) -> Iterator[Port]:
        """Return the coordinate streams of a shape whose nodes were rewritten already."""
        streams = (p for p, shape in self.shapes.items() if shape is wanted and self.types[p].kind == "crd")
        return (p for p in streams if p in self.wholes or p in self.lanes)

    def carried(self, shape: StreamShape, like: Port) -> Port:
        """Return the whole coordinate stream of a shape. If lanes of another index got only the values below it, it is dealt and
        merged in the same way as these values (`like`)."""
        if shape not in self.recovered:
            crd = next(self.of_shape(shape), None)
            if crd is not None:
                return self.whole(crd)
            match self.derivations.get(shape, shape.origin):
                case ("align", StreamShape() as below, StreamShape() as old, StreamShape() as new):
                    inputs = tuple(self.carried(s, like) for s in (old, new, below))
                    (self.recovered[shape],) = self.put(Align(self.named("align", like), inputs), like=like)
                case ("merge", *origins):
                    lanes = [lane for lane in origins if isinstance(lane, StreamShape)]
                    inputs = tuple(self.carried(lane, like) for lane in lanes)
                    (self.recovered[shape],) = self.put(Merge(self.named("merge", like), inputs, _levels_dealt(lanes)), like=like)
                case origin:
                    raise AssertionError(f"no coordinates of a structure by `{origin[0]}`")
        return self.recovered[shape]

    # Nodes ---------------------------------------------------------------------------------------------------------------------

    def copies(self, node: Primitive) -> tuple[str, ...]:
        """Put a copy of a node into every lane, and return the names of the copies."""
        written = self.filled(node.tensor) if isinstance(node, TensorWriter) else {}
        inputs = [written.get(p) or self.dealt(p) for p in node.inputs]
        names = []
        stage = self.stages.get(node.name)
        for k in range(self.count):
            copy = replace(node, name=self.fresh(f"{node.name}/{self.index}{k}"), inputs=tuple(lanes[k] for lanes in inputs))
            if isinstance(node, WriteLevel | WriteValues):
                at = self.at(node.inputs[0])
                assert at is not None
                copy = lane_writer(node, copy.name, copy.inputs, self.types[node.inputs[0]].depth - 1 - at, k, self.count)
            self.put(copy, like=Port(node.name), lane=k)
            names.append(copy.name)
            if node.name in self.loops:
                self.loops[names[-1]] = self.loops[node.name]
            if stage is not None:
                self.stages[names[-1]] = stage
        return tuple(names)

    def put(self, node: Primitive, like: Port | None = None, lane: int | None = None) -> tuple[Port, ...]:
        """Add a node, and return its outputs. With `like`, it gets an unused name, and is in the lanes of that stream's node and
        in lane `lane` of this index."""
        if like is not None:
            name = self.fresh(node.name)
            node = node if node.name == name else replace(node, name=name)
            inside = self.places.get(like.node, ())
            place = inside if lane is None else (*inside, (self.inside.get(like.node, self.loop), lane))
            if place:
                self.places[node.name] = place
        self.nodes[node.name] = node
        return node.ports

    def fresh(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self.nodes or candidate in self.by_name:
            count += 1
            candidate = f"{name}'{count}"
        return candidate

    def named(self, purpose: str, port: Port) -> str:
        stream = stream_name(self.by_name[port.node], port.output).replace(".", "_")
        return f"{purpose}_{self.index}_{stream}"

    def accessed(self, node: Primitive) -> Primitive:
        """Return a node without `sequential` if its references no longer come straight from the scan of the level above."""
        if isinstance(node, Scan | Load) and node.sequential:
            return replace(node, sequential=isinstance(self.nodes[node.inputs[0].node], Scan | Root))
        return node

    # Reductions over the lanes -------------------------------------------------------------------------------------------------

    def fold(self, node: Primitive, lanes: Sequence[str]) -> tuple[Port, ...]:
        """Combine the results of lanes by a tree of joins and operators. An empty lane has the identity or no coordinates."""
        assert isinstance(node, Reduce | Accumulate)
        function, slot = f"fold_{node.function}", Operand(REDUCERS[node.function].identity)
        like = Port(node.name)

        def folded(a: Port, b: Port) -> Port:
            return self.put(Alu(f"fold_{node.name}", (a, b), function, (slot, slot)), like=like)[0]

        def united(a: tuple[Port, ...], b: tuple[Port, ...]) -> tuple[Port, ...]:
            """Combine two bundles of coordinate streams and values."""
            (crd_a, *below_a), (crd_b, *below_b) = a, b
            if len(a) == 1:
                return (folded(crd_a, crd_b),)
            name = f"union_{node.name}"
            if len(a) == 2:
                crd, *values = self.put(Join(name, (crd_a, *below_a, crd_b, *below_b), "union", (1, 1)), like=like)
                return (crd, folded(*values))
            (crd,) = self.put(Join(name, (crd_a, crd_b), "union", (0, 0)), like=like)
            carried = tuple(
                tuple(self.put(Align(f"align_{node.name}", (old, crd, x)), like=like)[0] for x in below)
                for old, below in ((crd_a, below_a), (crd_b, below_b))
            )
            return (crd, *united(*carried))

        arity = len(node.port_names())
        return _tree([tuple(Port(lane, k) for k in range(arity)) for lane in lanes], united)


def _levels_dealt(lanes: Sequence[StreamShape]) -> int:
    """Return how many levels above the innermost the elements were dealt: there the shapes are lanes of one structure."""
    levels, at = 0, list(lanes)
    while any(shape.origin[0] != "lane" or shape.origin[2:] != (len(at), k) for k, shape in enumerate(at)):
        levels, at = levels + 1, [shape.parent for shape in at if shape.parent is not None]
        assert len(at) == len(lanes), "lanes that nothing dealt"
    return levels


def _tree(leaves: Sequence[T], combine: Callable[[T, T], T]) -> T:
    """Combine all leaves to one value, neighbours first."""
    while len(leaves) > 1:
        pairs = [combine(a, b) for a, b in zip(leaves[::2], leaves[1::2], strict=False)]
        leaves = [*pairs, *leaves[len(leaves) - len(leaves) % 2 :]]
    return leaves[0]
