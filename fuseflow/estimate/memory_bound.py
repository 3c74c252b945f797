"""The time that moving bytes takes at least: the lines that the nodes request, divided by what the channels move in a cycle.

Elements next to each other in one line are one request. What is read in order moves its bytes once. A fiber that is looked up begins
anywhere in a line. Single elements that are looked up move a line each, unless the same list looks up that line again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import assert_never

from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.node_work import elements_read
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.memory.settings import ComalFixedMemory, Hbm2Memory, IdealMemory, MemorySettings, clock_ratio
from fuseflow.sim.memory.timing import HBM2_2000
from fuseflow.tensors.levels.base import bytes_of

CHANNEL_BYTES = 32
"""The bytes that a channel of HBM2 moves in one of its cycles."""
FIXED_PIPE_BYTES = 16
"""The bytes that the fixed pipe of Comal moves in a cycle: four words."""

MEMORY_LATENCY = {"ideal": 0, "hbm2": 35, "comal_fixed": 18}
"""The cycles from a request to its answer in an idle memory, by model, beyond the one cycle of a memory that answers at once."""


def memory_answers(node: n.Node, declared: Mapping[str, n.TensorDecl]) -> int:
    """Return how many answers of the memory an element waits for on its way through a node, one after the other."""
    if isinstance(node, n.TensorUser) and not node.asks_memory(declared):
        return 0
    match node:
        case n.Load() | n.WriteValues():
            return 1
        case n.Scan():
            arrays = declared[node.tensor].stored_arrays(node.level)
            return any(array.scanned for array in arrays) + any(array.entry for array in arrays)
        case n.Locate():
            return int(any(array.told for array in declared[node.tensor].stored_arrays(node.level)))
        case _:
            return 0


def peak_bandwidth(machine: Machine) -> float:
    """Return the bytes that the memory can move in a cycle of the machine."""
    match machine.memory:
        case Hbm2Memory() as memory:
            return float(CHANNEL_BYTES * memory.channels * clock_ratio(memory.clock_ghz, machine.clock_ghz))
        case ComalFixedMemory():
            return FIXED_PIPE_BYTES
        case IdealMemory():
            return inf
        case unknown:
            assert_never(unknown)


def refresh_share(machine: Machine) -> float:
    """Return the share of the time in which no bank of the memory answers because all channels refresh themselves."""
    return HBM2_2000.nRFC / HBM2_2000.nREFI if isinstance(machine.memory, Hbm2Memory) else 0.0


def request_bytes(memory: MemorySettings) -> int:
    """Return the bytes of one request that a memory answers."""
    match memory:
        case Hbm2Memory():
            return memory.line
        case ComalFixedMemory():
            return 4
        case IdealMemory():
            return 64
        case unknown:
            assert_never(unknown)


def bytes_moved(graph: n.Graph, flows: Mapping[n.Port, Flow], line: int, writes: Mapping[str, Number]) -> Number:
    """Return the bytes that a memory moves in requests of `line` bytes for the reads of a graph, and for the `writes` by tensor, which are
    in order."""
    total: Number = sum(-(-number // line) * line for number in writes.values())
    nodes_by_name = graph.by_name
    for node in graph.nodes:
        if isinstance(node, n.TensorUser) and graph.declared[node.tensor].resident:
            continue
        if isinstance(node, n.Scan | n.Load):
            decl = graph.declared[node.tensor]
            inputs = [flows[port] for port in node.inputs]
            outputs = [flows[n.Port(node.name, k)] for k in range(len(node.port_names()))]
            for kind, words in elements_read(node, decl, inputs, outputs).items():
                width, bytes_ = _bytes_spanned(node, decl, kind, words, line)
                total += line * _requests(_lookup_node(node, nodes_by_name), bytes_, width, decl, flows, line) if words else 0
        elif isinstance(node, n.Locate):
            decl = graph.declared[node.tensor]
            words_of = elements_read(node, decl, [flows[port] for port in node.inputs], [flows[n.Port(node.name)]])
            if node.keeps(graph.declared):
                entries = sum(
                    bytes_of(words_of[array.kind], array.bits) for array in decl.stored_arrays(node.level) if array.entry
                )
                total += -(-entries // line) * line
            total += sum(bytes_of(words_of[array.kind], array.bits) for array in decl.stored_arrays(node.level) if array.told)
    return total


def _bytes_spanned(node: n.Scan | n.Load, decl: n.TensorDecl, kind: str, words: Number, line: int) -> tuple[int, Number]:
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


def _lookup_node(node: n.Scan | n.Load, nodes_by_name: Mapping[str, n.Node]) -> n.Scan | n.Load | None:
    """Return the node whose references decide where the elements lie that `node` reads.

    This is the node itself, or a scan above it whose fibers it reads one after the other. None means that it reads the whole tensor once,
    from start to end.
    """
    while node.sequential:
        producer = nodes_by_name[node.inputs[0].node]
        if isinstance(producer, n.Root):
            return None
        if not isinstance(producer, n.Scan) or producer.tensor != node.tensor:
            break
        node = producer
    return node


def _requests(
    node: n.Scan | n.Load | None, bytes_: Number, width: int, decl: n.TensorDecl, flows: Mapping[n.Port, Flow], line: int
) -> Number:
    """Return the number of requests for `bytes_` of an array that the references of `node` look up.

    The references of each list are a share of the coordinates of a dimension, in order.
    """
    if node is None:
        return max(1.0, bytes_ / line)
    refs = flows[node.inputs[0]]
    present, lists = refs.elements - refs.absent, refs.inner_filled or 1
    bytes_per_reference = bytes_ / present if present else 0.0  # bytes below a reference
    level = node.level - 1 if isinstance(node, n.Scan) else decl.format.rank - 1
    coordinates = decl.shape[decl.format.order[level]] if level >= 0 else 1
    if bytes_per_reference * prod(decl.shape[d] for d in decl.format.order[: level + 1]) <= line:  # the line that was read last
        return 1.0
    if level < 0:  # from the start again
        return present * max(1.0, bytes_per_reference / line)
    share = min(1.0, present / lists / coordinates)
    # The references that have elements in one line. A line that is no longer than an element is that of one reference.
    references_per_line = (bytes_per_reference + max(0, line - width)) / bytes_per_reference
    hit_share: float = 1 - (1 - share) ** references_per_line
    return lists * max(1.0, coordinates * bytes_per_reference / line * hit_share)
