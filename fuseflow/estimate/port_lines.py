"""The lines that the ports of a graph request of the memory, and how these lie: one behind the other, or anywhere.

Elements next to each other in one line are one request. What is read in order requests every line once. A fiber that is looked up begins
anywhere in a line. Single elements that are looked up request a line each, unless the same list looks up that line again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import gcd, prod
from typing import NamedTuple, TypeAlias

import numpy as np

from fuseflow.estimate.buffer_reuse import Loop, fetched_share, lines_at_once, lines_in_turn, new_line_share
from fuseflow.estimate.node_work import elements_read
from fuseflow.estimate.reference_origins import Addresses, Lookup
from fuseflow.estimate.stream_flow import Flow, Number, Truth, choose, largest, least
from fuseflow.memory.buffer_assignment import PortName
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import bytes_of

ReaderNode = n.Scan | n.Locate | n.Load
ArrayPlace: TypeAlias = tuple[str, int, str]
"""The name of an array: its tensor, its level in that (-1 for the values), and its kind."""

AT_ONCE = 32
"""The lines that a port is taken to have without an answer, where it matters which of them are the same."""


class PortLines(NamedTuple):
    """What a port requests of an array: `lines`, in a number of pieces (`jumps`) of lines one behind the other. `hits` are
    further lines, which it finds in its reuse buffer.

    `in_order` says that the whole array is read once from its start, so that lines are fetched ahead. `dealt` is the number of
    lanes that share the lines of a fiber, and `divided` the number that look up different things: the other lanes read the same
    lines. `awaited` lines are preloaded for a node that goes through the array more than once, so that it waits for all of them.
    `at_once` is how many different lines there are among `AT_ONCE` ones in a row, of which a share `in_list` belongs to one list.
    `along` is the innermost loop that changes them, where they lie evenly apart, and `in_turn` how many of them follow each
    other.
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

    @property
    def array(self) -> ArrayPlace:
        return self.tensor, self.level, self.kind


def read_lines(
    graph: n.Graph,
    flows: Mapping[n.Port, Flow],
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
    buffers: Mapping[PortName, int],
    on_chip: bool = False,
) -> Iterator[PortLines]:
    """Yield what each port of the nodes that read requests of the memory, in lines of `line` bytes, or, with `on_chip`, of the
    scratchpad. A resident tensor is in neither. `buffers` has the lines of each reuse buffer, by port."""
    forks = {node.name: node.lanes for node in graph.nodes if isinstance(node, n.Fork)}
    addresses = Addresses(graph, flows.__getitem__, forks)
    readers = Counter(node.tensor for node in graph.nodes if isinstance(node, n.Load))
    for node in graph.nodes:
        if not isinstance(node, ReaderNode) or graph.declared[node.tensor].resident:
            continue
        if on_chip != bool(graph.declared[node.tensor].scratchpad):
            continue
        inputs = [flows[port] for port in node.inputs]
        outputs = [flows[port] for port in node.ports]
        for port in node_lines(node, addresses, inputs, outputs, line, array_bytes):
            if graph.declared[node.tensor].preload:
                yield preloaded(port, readers[node.tensor], array_bytes, line)
            else:
                yield buffered(port, node, addresses, inputs[0], line, array_bytes, buffers)


def node_lines(
    node: ReaderNode,
    addresses: Addresses,
    inputs: Sequence[Flow],
    outputs: Sequence[Flow],
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
) -> Iterator[PortLines]:
    """Yield what each port of a node requests, in lines of `line` bytes. `inputs` and `outputs` are the flows of its streams."""
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
        width, bytes_, beyond = _bytes_spanned(node, decl, kind, words, line)
        if lookup is None:
            yield PortLines(node.name, node.tensor, level, kind, largest((1.0, bytes_ / line)), 1, in_order=True)
            continue
        refs = inputs[0] if lookup is node else addresses.flow_of(lookup.inputs[0])
        lines, jumps = _lookup_lines(lookup, addresses, refs, bytes_, beyond, width, decl, line)
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
    """Return the port of a node that reads a preloaded array with its share of the lines: they are read once for all `readers`
    together."""
    lines = array_bytes.get(port.array, 0) / line / max(1, readers)
    return port._replace(lines=lines, jumps=1 / max(1, readers), in_order=True, dealt=1, divided=1, awaited=port.jumps > 1)


def buffered(
    port: PortLines,
    node: ReaderNode,
    addresses: Addresses,
    first: Flow,
    line: int,
    array_bytes: Mapping[ArrayPlace, int],
    buffers: Mapping[PortName, int],
    candidate: int = 0,
) -> PortLines:
    """Return a port of a node with only the lines that its reuse buffer does not have; as it is if it has none. `first` is the
    flow of the node's first input. Flows may have arrays over many candidates; then the port is that of number `candidate`."""
    capacity = next((lines for (name, array), lines in buffers.items() if name == port.node and array == port.array), 0)
    if not capacity:
        return port
    array_lines = max(1.0, array_bytes.get(port.array, 0) / line)
    if isinstance(node, n.Locate):
        share = min(1.0, array_lines / max(1.0, port.lines)) if capacity >= array_lines else 1.0
    elif (lookup := addresses.lookup(node)) is None:
        return port  # it asks for no line twice. The simulator gives it a buffer where a level of one coordinate is left out
    else:
        refs = (first if lookup is node else addresses.flow_of(lookup.inputs[0])).at(candidate)
        each = port.lines / max(1.0, refs.elements - refs.absent)
        share = fetched_share(
            refs, addresses.loops(lookup, array_lines), port.lines, min(each, array_lines), array_lines, capacity
        )
    return port._replace(lines=port.lines * share, jumps=port.jumps * share, hits=port.lines * (1 - share))


def _bytes_spanned(node: Lookup, decl: n.TensorDecl, kind: str, words: Number, line: int) -> tuple[int, Number, int]:
    """Return the bytes of one element of an array, the bytes that the lines of `words` elements cover, and the bytes by which a
    piece overlaps the next one.

    What a scan reads at one reference may overlap what it reads at the next one, or leave a gap before it.
    """
    for array in decl.stored_arrays(node.level) if isinstance(node, n.Scan) else ():
        if array.kind == kind and array.scanned:
            stride, piece = bytes_of(array.fiber, array.bits), bytes_of(array.scanned, array.bits)
            spanned = words / array.scanned * min(stride, max(line, piece))
            return bytes_of(1, array.bits), spanned, max(0, piece - stride)
        if array.kind == kind:
            return bytes_of(1, array.bits), bytes_of(words, array.bits), 0
    return bytes_of(1, decl.element_bits), bytes_of(words, decl.element_bits), 0


def _lookup_lines(
    node: Lookup, addresses: Addresses, refs: Flow, bytes_: Number, beyond: int, width: int, decl: n.TensorDecl, line: int
) -> tuple[Number, Number]:
    """Return the lines of `bytes_` of an array that the references of `node` look up, and the pieces in which these lie. A piece reaches
    `beyond` bytes into the next one.

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
    varying = -1 if level < 0 else addresses.varying_level(node, level)
    is_even = all(kind.full for kind in decl.format.levels[level + 1 :])  # equally many bytes are below each reference
    in_line = _common_divisor(each, line) if is_even else width
    if level < 0:  # from the start again
        lines, jumps = present * np.ceil((each + beyond) / line), present
    elif varying < 0:
        lines, jumps = _repeated_lines(present, lists, (each + beyond + line - in_line) / line)
    else:
        stride = each * prod(sizes[varying + 1 : level + 1])  # bytes from one coordinate to the next
        across = largest((1.0, (each + line - in_line) / line))  # lines of a piece that begins anywhere
        lines, jumps = _dealt_lines(addresses.lanes(node)[0], sizes[varying], present, lists, each, stride, in_line, line)
        is_apart = (stride > each) & (stride >= line)
        lines, jumps = choose(is_apart, present * across, lines), choose(is_apart, present, jumps)
    is_one = each * prod(sizes[: level + 1]) + beyond <= line  # the line that was read last
    return choose(some, choose(is_one, 1.0, lines), 0.0), choose(some, choose(is_one, 1.0, jumps), 0.0)


def _repeated_lines(present: Number, lists: Number, across: Number) -> tuple[Number, Number]:
    """Return the lines and pieces where all references of a list (`present` in all `lists`) are to one piece. It lies in `across`
    lines on average.

    A line that is the last one read is not read again, so that a piece in one line is read once for each list. One in two lines
    is read for each reference.
    """
    split = least((1.0, largest((0.0, across - 1))))  # the share of pieces that lie in more than one line
    return lists * (1 - split) + present * split * largest((2.0, across)), lists * (1 - split) + present * split


def _dealt_lines(
    dealt: Number, size: int, present: Number, lists: Number, each: Number, stride: Number, in_line: Number, line: int
) -> tuple[Number, Number]:
    """Return the lines and pieces of references that lie `stride` bytes apart, along a dimension of `size` that is dealt."""
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
    """Return the greatest common divisor of `each` bytes, rounded to whole ones, and the bytes of a line."""
    if isinstance(each, np.ndarray):
        common: Number = np.gcd(np.rint(each).astype(np.int64), line)
        return common
    return gcd(round(each), line)
