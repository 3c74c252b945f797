"""How long moving bytes takes at least: lines that the nodes ask for, over what the channels move in a cycle.

Elements next to each other in one line are one request. What is read in order moves its bytes once; a fiber that is looked up begins
anywhere in a line; single elements that are looked up move a line each, unless the list that looks them up hits the same line again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, prod
from typing import assert_never

from fuseflow.estimate.flows import Flow, Number
from fuseflow.estimate.node_work import elements_read
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.memory.settings import ComalFixedMemory, Hbm2Memory, IdealMemory, clock_ratio
from fuseflow.sim.memory.timing import HBM2_2000
from fuseflow.tensors import DTYPES
from fuseflow.tensors.levels.base import WORD_BYTES

CHANNEL_BYTES = 32
"""That a channel of HBM2 moves in one of its cycles."""
FIXED_PIPE_BYTES = 16
"""That the fixed pipe of Comal moves in a cycle: four words."""


MEMORY_LATENCY = {"ideal": 0, "hbm2": 35, "comal_fixed": 18}
"""Cycles from a request to its answer in a memory that has nothing else to do, beyond the one of a memory that answers at once."""


def memory_latency(node: n.Node, decl: n.TensorDecl | None, machine: Machine) -> int:
    """Cycles that an element waits for answers on its way through a node; a scan has two, one after the other."""
    answer = MEMORY_LATENCY[machine.memory.model]
    if isinstance(node, n.Load | n.WriteValues):
        return answer
    if isinstance(node, n.Scan) and decl is not None:
        arrays = decl.stored_arrays(node.level)
        return answer * (any(array.scanned for array in arrays) + any(array.entry for array in arrays))
    if isinstance(node, n.Locate) and decl is not None:
        return answer * any(array.told for array in decl.stored_arrays(node.level))
    return 0


def peak_bandwidth(machine: Machine) -> float:
    """Bytes that memory can move in a cycle of the machine."""
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
    """The share of the time in which no bank of the memory answers: all channels refresh themselves at once."""
    return HBM2_2000.nRFC / HBM2_2000.nREFI if isinstance(machine.memory, Hbm2Memory) else 0.0


def bytes_moved(graph: n.Graph, flows: Mapping[n.Port, Flow], machine: Machine, writes: Mapping[str, Number]) -> Number:
    """Bytes that memory moves for the reads of a graph, and for the `writes`, by tensor, which are in order."""
    memory = machine.memory
    if isinstance(memory, ComalFixedMemory):
        line, least = 4, 4
    else:
        line = memory.line if isinstance(memory, Hbm2Memory) else 64
        least = line
    total: Number = sum(-(-number // least) * least for number in writes.values())
    made = graph.by_name
    for node in graph.nodes:
        if isinstance(node, n.Scan | n.Load):
            decl = graph.declared[node.tensor]
            inputs = [flows[port] for port in node.inputs]
            outputs = [flows[n.Port(node.name, k)] for k in range(len(node.port_names()))]
            for kind, words in elements_read(node, decl, inputs, outputs).items():
                width, bytes_ = _bytes_spanned(node, decl, kind, words, line)
                total += line * _requests(_lookup_node(node, made), bytes_, width, decl, flows, line) if words else 0
        elif isinstance(node, n.Locate):
            decl = graph.declared[node.tensor]
            words_of = elements_read(node, decl, [flows[port] for port in node.inputs], [])
            total += sum(WORD_BYTES[array.kind] * words_of[array.kind] for array in decl.stored_arrays(node.level) if array.told)
    return total


def _bytes_spanned(node: n.Scan | n.Load, decl: n.TensorDecl, kind: str, words: Number, line: int) -> tuple[int, Number]:
    """Of so many elements of an array the bytes of one, and the bytes among which they lie, as far as these are on lines with elements:
    what a scan asks for at one reference may reach into what it asks for at the next, or leave a gap before it."""
    for array in decl.stored_arrays(node.level) if isinstance(node, n.Scan) else ():
        if array.kind == kind and array.scanned:
            each = min(array.fiber * array.bytes, max(line, array.scanned * array.bytes))
            return array.bytes, words / array.scanned * each
        if array.kind == kind:
            return array.bytes, words * array.bytes
    width = DTYPES[decl.dtype].itemsize
    return width, words * width


def _lookup_node(node: n.Scan | n.Load, made: Mapping[str, n.Node]) -> n.Scan | n.Load | None:
    """The node whose references decide where the elements lie that `node` reads: itself, or a scan above whose fibers it reads one after
    the other. None: that is the whole tensor, from its start to its end, once."""
    while node.sequential:
        above = made[node.inputs[0].node]
        if isinstance(above, n.Root):
            return None
        if not isinstance(above, n.Scan) or above.tensor != node.tensor:
            break
        node = above
    return node


def _requests(
    node: n.Scan | n.Load | None, bytes_: Number, width: int, decl: n.TensorDecl, flows: Mapping[n.Port, Flow], line: int
) -> Number:
    """Requests for so many bytes of an array that are looked up by the references of `node`: a share of the coordinates of a dimension,
    in order, list by list."""
    if node is None:
        return max(1.0, bytes_ / line)
    refs = flows[node.inputs[0]]
    present, lists = refs.elements - refs.absent, refs.inner_filled or 1
    each = bytes_ / present if present else 0.0  # bytes below a reference
    level = node.level - 1 if isinstance(node, n.Scan) else decl.format.rank - 1
    places = decl.shape[decl.format.order[level]] if level >= 0 else 1
    if each * prod(decl.shape[d] for d in decl.format.order[: level + 1]) <= line:  # the line that was read last
        return 1.0
    if level < 0:  # from the start again
        return present * max(1.0, each / line)
    share = min(1.0, present / lists / places)
    near = (each + line - width) / each  # references whose elements are in one line
    hit: float = 1 - (1 - share) ** near
    return lists * max(1.0, places * each / line * hit)
