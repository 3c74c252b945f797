"""The lines that the ports of a graph request of the memory, and how these lie: one behind the other, or anywhere.

Elements next to each other in one line are one request. What is read in order requests every line once. A fiber that is looked up begins
anywhere in a line. Single elements that are looked up request a line each, unless the same list looks up that line again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd, prod
from typing import NamedTuple, TypeAlias, assert_never

import numpy as np

from fuseflow.estimate.buffer_reuse import Loop, OwnLoop, fetched_share, lines_at_once, lines_in_turn, new_line_share
from fuseflow.estimate.flows import Flow, Number, Truth, choose, largest, least
from fuseflow.estimate.node_work import elements_read
from fuseflow.samml import nodes as n
from fuseflow.samml.coordinate_bounds import stream_bounds
from fuseflow.sim.memory.buffered_ports import PortName
from fuseflow.tensors.levels.base import bytes_of

ReaderNode = n.Scan | n.Locate | n.Load
Lookup = n.Scan | n.Load
ArrayPlace: TypeAlias = tuple[str, int, str]
"""An array: its tensor, a storage level of that (-1 for the values), and its kind."""

AT_ONCE = 32
"""The lines that a port has without an answer, as far as it matters which of them are the same."""


class PortLines(NamedTuple):
    """What a port requests of an array: `lines`, in so many pieces (`jumps`) of lines one behind the other. `hits` are those that it finds
    in its reuse buffer, beside these.

    `in_order` says that the whole array is read once from its start, so that lines are fetched ahead. `dealt` is the lanes that share the
    lines of a fiber between them, and `divided` those that look up different things: the lanes that are left read the same lines.
    `awaited` lines are preloaded for a node that goes through the array more than once, so that it waits for all of them. `at_once` is how
    many different lines there are among `AT_ONCE` ones in a row, of which a share `in_list` is that of one list. `along` is the innermost
    loop that changes them, where they lie evenly apart, and `in_turn` how many of them follow each other.
    """

    node: str
    tensor: str
    level: int
    kind: str
    lines: Number
    jumps: Number
    in_order: bool = False
    dealt: Number = 1
    divided: Number = 1
    hits: Number = 0
    awaited: bool = False
    at_once: Number = AT_ONCE
    in_list: Number = 1.0
    along: Loop = None
    in_turn: Number = 1


def read_lines(
    graph: n.Graph,
    flows: Mapping[n.Port, Flow],
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
    buffers: Mapping[PortName, int],
) -> Iterator[PortLines]:
    """Yield what each port of the nodes that read requests, in lines of `line` bytes. A resident tensor is not in the memory. `buffers` has
    the lines of reuse buffers."""
    forks = {node.name: node.lanes for node in graph.nodes if isinstance(node, n.Fork)}
    addresses = Addresses(graph, flows, forks)
    readers = Counter(node.tensor for node in graph.nodes if isinstance(node, n.Load))
    for node in graph.nodes:
        if not isinstance(node, ReaderNode) or graph.declared[node.tensor].resident:
            continue
        inputs = [flows[port] for port in node.inputs]
        outputs = [flows[n.Port(node.name, k)] for k in range(len(node.port_names()))]
        for port in node_lines(node, addresses, inputs, outputs, flows, line, array_bytes):
            if graph.declared[node.tensor].preload:
                yield preloaded(port, readers[node.tensor], array_bytes, line)
                continue
            yield buffered(port, node, addresses, inputs[0], flows, line, array_bytes, buffers) if buffers else port


def node_lines(
    node: ReaderNode,
    addresses: Addresses,
    inputs: Sequence[Flow],
    outputs: Sequence[Flow],
    flows: Mapping[n.Port, Flow],
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
) -> Iterator[PortLines]:
    """Yield what each port of a node requests, given the flows of its inputs and outputs."""
    decl = addresses.graph.declared[node.tensor]
    words_of = elements_read(node, decl, inputs, outputs)
    if isinstance(node, n.Locate):
        kept = node.keeps({node.tensor: decl})
        for array in decl.stored_arrays(node.level):
            if array.entry if kept else array.told:
                bytes_ = bytes_of(words_of[array.kind], array.bits)
                yield PortLines(node.name, node.tensor, node.level, array.kind, bytes_ / line, 1, in_order=kept)
        return
    level = -1 if isinstance(node, n.Load) else node.level
    lookup = addresses.lookup(node)
    for kind, words in words_of.items():
        if not np.any(words):
            continue
        width, bytes_ = _bytes_spanned(node, decl, kind, words, line)
        if lookup is None:
            yield PortLines(node.name, node.tensor, level, kind, largest((1.0, bytes_ / line)), 1, in_order=True)
            continue
        refs = flows[lookup.inputs[0]] if lookup is not node else inputs[0]
        lines, jumps = _lookup_lines(lookup, addresses, refs, bytes_, width, decl, line)
        dealt, divided = addresses.lanes(lookup)
        loops = addresses.loops(lookup, max(1.0, array_bytes.get((node.tensor, level, kind), 0) / line))
        at_once, in_list = lines_at_once(refs, loops, lines, AT_ONCE)
        along = next((loop for loop in reversed(loops) if loop), None) if decl.format.all_dense else None
        in_turn, left = lines_in_turn(refs, loops, lines), lines * new_line_share(refs, loops, lines)
        yield PortLines(
            node.name,
            node.tensor,
            level,
            kind,
            left,
            jumps,
            dealt=dealt,
            divided=divided,
            at_once=at_once,
            in_list=in_list,
            along=along,
            in_turn=in_turn,
        )


def preloaded(port: PortLines, readers: int, array_bytes: Mapping[ArrayPlace, int], line: int) -> PortLines:
    """Return a port of a node that reads a preloaded array with its share of the lines, which are read once for all `readers`."""
    place = port.tensor, port.level, port.kind
    lines = array_bytes.get(place, 0) / line / max(1, readers)
    return port._replace(lines=lines, jumps=1 / max(1, readers), in_order=True, dealt=1, divided=1, awaited=port.jumps > 1)


def buffered(
    port: PortLines,
    node: ReaderNode,
    addresses: Addresses,
    first: Flow,
    flows: Mapping[n.Port, Flow],
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
    buffers: Mapping[PortName, int],
) -> PortLines:
    """Return a port of a node with the lines that it does not find in its reuse buffer, if it has one. `first` is the flow of the node's
    first input."""
    place = port.tensor, port.level, port.kind
    capacity = next((lines for (name, array), lines in buffers.items() if name == port.node and array == place), 0)
    if not capacity:
        return port
    array_lines = max(1.0, array_bytes.get(place, 0) / line)
    if isinstance(node, n.Locate):
        share = min(1.0, array_lines / max(1.0, port.lines)) if capacity >= array_lines else 1.0
    else:
        lookup = addresses.lookup(node)
        if lookup is None:
            return port  # it asks for no line twice. The simulator gives it a buffer where a level of one coordinate is left out
        refs = first if lookup is node else flows[lookup.inputs[0]]
        each = port.lines / max(1.0, refs.elements - refs.absent)
        share = fetched_share(
            refs, addresses.loops(lookup, array_lines), port.lines, min(each, array_lines), array_lines, capacity
        )
    return port._replace(lines=port.lines * share, jumps=port.jumps * share, hits=port.lines * (1 - share))


def _bytes_spanned(node: Lookup, decl: n.TensorDecl, kind: str, words: Number, line: int) -> tuple[int, Number]:
    """Return the bytes of one element of an array, and the bytes over which `words` elements spread, as far as their lines reach.

    What a scan reads at one reference may overlap what it reads at the next one, or leave a gap before it.
    """
    for array in decl.stored_arrays(node.level) if isinstance(node, n.Scan) else ():
        if array.kind == kind and array.scanned:
            stride, piece = bytes_of(array.fiber, array.bits), bytes_of(array.scanned, array.bits)
            return bytes_of(1, array.bits), words / array.scanned * min(stride, max(line, piece))
        if array.kind == kind:
            return bytes_of(1, array.bits), bytes_of(words, array.bits)
    return bytes_of(1, decl.element_bits), bytes_of(words, decl.element_bits)


def _lookup_lines(
    node: Lookup, addresses: Addresses, refs: Flow, bytes_: Number, width: int, decl: n.TensorDecl, line: int
) -> tuple[Number, Number]:
    """Return the lines of `bytes_` of an array that the references of `node` look up, and the pieces in which these lie.

    The references of each list are a share of the coordinates of a dimension, in order: anywhere, or every so many where the list was
    dealt to lanes.
    """
    present, lists = refs.elements - refs.absent, choose(refs.inner_filled > 0, refs.inner_filled, 1)
    some: Truth = (present > 0) & (bytes_ > 0)
    if not np.any(some):
        return 0.0, 0.0
    present, bytes_ = choose(some, present, 1), choose(some, bytes_, 1)
    each = bytes_ / present  # bytes below a reference
    level = node.level - 1 if isinstance(node, n.Scan) else decl.format.rank - 1
    sizes = [decl.shape[d] for d in decl.format.order]
    lines, jumps = _spread_lines(node, addresses, present, lists, each, width, decl, level, line)
    is_one = each * prod(sizes[: level + 1]) <= line  # the line that was read last
    return choose(some, choose(is_one, 1.0, lines), 0.0), choose(some, choose(is_one, 1.0, jumps), 0.0)


def _spread_lines(
    node: Lookup,
    addresses: Addresses,
    present: Number,
    lists: Number,
    each: Number,
    width: int,
    decl: n.TensorDecl,
    level: int,
    line: int,
) -> tuple[Number, Number]:
    """Return the lines of an array of more than one line, and the pieces, given the bytes below `each` reference that is `present`."""
    if level < 0:  # from the start again
        return present * largest((1.0, each / line)), present
    varying = addresses.varying_level(node, level)
    sizes = [decl.shape[d] for d in decl.format.order]
    stride = each * prod(sizes[varying + 1 : level + 1])  # bytes from one coordinate to the next
    in_line = _common_divisor(each, line) if _is_even(decl, level) else width
    across = largest((1.0, (each + line - in_line) / line))  # lines of a piece that begins anywhere
    if varying < 0:  # a line that is the last one read is not read again
        times = choose(each <= line, lists, present)
        return times * across, times
    lines, jumps = _dealt_lines(addresses.lanes(node)[0], sizes[varying], present, lists, each, stride, in_line, line)
    is_apart = (stride > each) & (stride >= line)
    return choose(is_apart, present * across, lines), choose(is_apart, present, jumps)


def _dealt_lines(
    dealt: Number, size: int, present: Number, lists: Number, each: Number, stride: Number, in_line: Number, line: int
) -> tuple[Number, Number]:
    """Return the lines and pieces of references that lie `stride` bytes apart in a dimension of so many coordinates."""
    coordinates = choose(dealt == 1, size, least((size, dealt * present / lists)))
    share = least((1.0, present / lists / coordinates))
    # The references that have elements in one line. A line that is no longer than an element is that of one reference.
    in_reach = (each + largest((0, line - in_line))) / stride
    hit = choose(dealt > 1, least((1.0, share * in_reach)), 1 - (1 - share) ** in_reach)
    lines = lists * largest((1.0, coordinates * stride / line * hit))
    followers = choose(stride >= line, present - lists, lines - lists)
    jumps = lists + largest((0.0, followers * (1 - choose(stride >= line, share, hit))))
    return lines, choose(dealt > 1, lists, jumps)


def _common_divisor(each: Number, line: int) -> Number:
    """Return the greatest common divisor of bytes, to whole ones, and those of a line."""
    if isinstance(each, np.ndarray):
        common: Number = np.gcd(np.rint(each).astype(np.int64), line)
        return common
    return gcd(round(each), line)


def _is_even(decl: n.TensorDecl, level: int) -> bool:
    """Return whether what is below each reference of a level is equally long."""
    return all(kind.full for kind in decl.format.levels[level + 1 :])


class Addresses:
    """The ways of references through a graph: what decides where a node reads. `lanes_of` are the lanes of each fork."""

    def __init__(self, graph: n.Graph, flows: Mapping[n.Port, Flow], lanes_of: Mapping[str, Number]) -> None:
        self.graph, self.flows, self.lanes_of = graph, flows, lanes_of
        self.by_name = graph.by_name
        self.types = graph.types()
        self.bounds = stream_bounds(graph)
        self._forks: dict[n.Port, dict[str, Truth]] = {}

    def lookup(self, node: Lookup) -> Lookup | None:
        """Return the node whose references decide where the elements lie that `node` reads.

        This is the node itself, or a scan above it whose fibers it reads one after the other. None means that it reads the whole tensor
        once, from start to end.
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
        """Return the level of a tensor whose coordinate changes from one reference to the next, where a node looks up references of
        `level`. It is -1 if all references of a list are equal."""
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
        """Return the stream of which a stream has the elements, where nodes only choose among them or deal them."""
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
                case n.Fork() | n.Merge():
                    port = node.inputs[0]
                case n.Root() | n.Scan() | n.Range() | n.Repeat() | n.Pointwise() | n.Reduce() | n.Accumulate():
                    return port
                case n.Permute() | n.Select() | n.Flatten() | n.SplitLevel() | n.TensorWriter():
                    return port
                case unknown:
                    assert_never(unknown)

    def lanes(self, node: Lookup) -> tuple[Number, Number]:
        """Return the lanes to which the references of a node are dealt in their innermost lists, and those of all forks on their ways."""
        port = node.inputs[0]
        fork = self._dealing(port)
        deciding = (choose(decides, self.lanes_of[name], 1) for name, decides in self._deciding(port).items())
        return self.lanes_of[fork] if fork else 1, prod(deciding)

    def _dealing(self, port: n.Port) -> str:
        """Return the fork that deals the references of a stream in their innermost lists, empty if none does."""
        while isinstance(producer := self.by_name[port.node], n.Fork | n.Join | n.Locate):
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
        """Return the loops around the references of a look-up, outermost first, given the lines of the array."""
        decl, port = self.graph.declared[node.tensor], node.inputs[0]
        level = node.level - 1 if isinstance(node, n.Scan) else decl.format.rank - 1
        levels = self._own_levels(port, level)
        sizes = [decl.size(p) for p in range(level + 1)]
        strides = [array_lines / max(1, prod(sizes[: p + 1])) for p in range(level + 1)]
        own = {depth: OwnLoop(sizes[p], strides[p], strides[level]) for depth, p in levels.items() if 0 <= p <= level}
        return tuple(own.get(depth) for depth in range(1, self.types[port].depth + 1))

    def _own_levels(self, port: n.Port, level: int) -> dict[int, int]:
        """Return the level of a tensor along which references to its `level` change, for each depth, outermost 1, where they do."""
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
        """Return the depth at which a stream of coordinates gets them: it repeats them further inside."""
        port = self._origin(port)
        while isinstance(node := self.by_name[port.node], n.Repeat):
            port = self._origin(node.inputs[0])
        return self.types[port].depth

    def _deciding(self, port: n.Port) -> dict[str, Truth]:
        """Return the forks that may decide what a stream has, and whether each does."""
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
                    lacks = self._lacks_some(n.Port(node.name))  # which coordinates there are tells lanes apart
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
        """Return the forks that may decide what any of some streams has."""
        forks: dict[str, Truth] = {}
        for port in ports:
            for name, decides in self._deciding(port).items():
                forks[name] = forks.get(name, False) | decides
        return forks

    def _lacks_some(self, port: n.Port) -> Truth:
        """Return whether the lists of a stream of coordinates lack some of them."""
        flow = self.flows[port]
        lacks: Truth = flow.elements < flow.inner * self.bounds[port]
        return lacks
