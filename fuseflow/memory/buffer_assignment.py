"""The ports of a graph that have a reuse buffer, with the lines that each holds, and the nodes that read preloaded tensors.

Each port that reads an array of a tensor with a `buffer`, in an order that tokens decide, has a reuse buffer. A port that reads
its whole array in order, and a locate that reads its level once, request no line again: they have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TypeAlias

from fuseflow.errors import MachineError
from fuseflow.memory.layout import ArrayName
from fuseflow.samml import nodes as n
from fuseflow.tensors.levels.base import StoredArray, bytes_of

PortName: TypeAlias = tuple[str, ArrayName]
"""The name of a port that reads: its node, and the array."""


def buffered_ports(graph: n.Graph, line: int) -> Mapping[PortName, int]:
    """Return the number of lines, of `line` bytes each, in the reuse buffer of each port, in the order of the nodes. No buffer is
    larger than its array can be. Raises `MachineError` if a buffer is smaller than a line.
    """
    declared = graph.declared
    if not any(tensor.buffer for tensor in graph.tensors):
        return {}
    ports: dict[PortName, int] = {}
    for node, array, most_bytes in _asked_ports(graph):
        size = declared[array[0]].buffer
        if 0 < size < line:
            raise MachineError(
                f"the reuse buffer of `{array[0]}` has {size} bytes, and a line of the memory has {line}",
                hint=f"a buffer holds whole lines: give it {line} bytes or more",
            )
        lines = min(size // line, -(-most_bytes // line))
        if lines:
            ports[node, array] = lines
    return ports


def preloaded_readers(graph: n.Graph) -> Mapping[str, int]:
    """Return the nodes that read a preloaded tensor, in the order of the graph, each with the bytes of its values, all of which
    it keeps. A node that reads in order keeps nothing and is left out, since it requests no line twice. A preloaded tensor is
    stored dense, so only its values are requested."""
    if not any(tensor.preload for tensor in graph.tensors):
        return {}
    return {node: size for node, (tensor, _, _), size in _asked_ports(graph) if graph.declared[tensor].preload}


def preloading_nodes(graph: n.Graph) -> Mapping[str, int]:
    """Return the first node that reads each preloaded tensor, in the order of the graph, with the number of ports that preload
    the tensor and belong to that node."""
    readers, ports = preloaded_readers(graph), {tensor.name: tensor.preload for tensor in graph.tensors}
    loads = [node for node in graph.nodes if isinstance(node, n.Load) and node.name in readers]
    first = {node.tensor: node.name for node in reversed(loads)}
    return {node.name: ports[node.tensor] for node in loads if first[node.tensor] == node.name}


def sequential_readers(graph: n.Graph) -> set[str]:
    """Return the names of the scans and loads that read their whole array in order: all their references come directly from the
    scan of the level above, which does so too, up to the root."""
    names: set[str] = set()
    for node in graph.nodes:
        if isinstance(node, n.Scan | n.Load):
            above, tensor = graph.maker(node.inputs[0]), graph.declared[node.tensor]
            level = node.level if isinstance(node, n.Scan) else len(tensor.format.levels)
            if isinstance(above, n.Root):
                in_order = level == 0
            else:
                scanned = (tensor.level_tensor(level - 1), level - 1)
                in_order = isinstance(above, n.Scan) and above.name in names and (above.tensor, above.level) == scanned
            if in_order:
                names.add(node.name)
    return names


def early_readers(graph: n.Graph) -> set[str]:
    """Return the names of the nodes that ask for words of a tensor before any token needs them, where that tensor is loaded into the
    scratchpad: those that read in order, and locates that keep their level. They ask from the cycle on in which the last line that is
    loaded is there, as the root of the graph fires. A load never waits for its readers, so none of them waits for ever."""
    in_order, declared = sequential_readers(graph), graph.declared
    readers = [node for node in graph.nodes if isinstance(node, n.Scan | n.Locate | n.Load)]
    loaded = [node for node in readers if declared[node.tensor].scratchpad == "moved" and node.asks_memory(declared)]
    return {node.name for node in loaded if node.name in in_order or (isinstance(node, n.Locate) and node.keeps(declared))}


def _asked_ports(graph: n.Graph) -> Iterator[tuple[str, ArrayName, int]]:
    """Yield every port whose requests depend on tokens: its node, its array, and the most bytes that the array can have."""
    in_order, declared = sequential_readers(graph), graph.declared
    for node in graph.nodes:
        if not isinstance(node, n.Scan | n.Locate | n.Load) or node.name in in_order or not node.asks_memory(declared):
            continue
        tensor = declared[node.tensor]
        if isinstance(node, n.Load):
            yield node.name, (node.tensor, -1, "val"), bytes_of(prod(_widths(tensor)), tensor.value_bits)
        elif not (isinstance(node, n.Locate) and node.keeps(declared)):
            for array in _asked_arrays(node, tensor):
                yield (
                    node.name,
                    (node.tensor, node.level, array.kind),
                    bytes_of(_most_elements(tensor, node.level, array), array.bits),
                )


def _asked_arrays(node: n.Scan | n.Locate, tensor: n.TensorDecl) -> tuple[StoredArray, ...]:
    """Return the arrays of a level that a node requests elements of."""
    level, size = tensor.format.levels[node.level], tensor.size(node.level)
    if isinstance(node, n.Locate):
        return tuple(level.points(size))
    reads = level.reads(size)
    return (*reads.scanned, *((reads.entries,) if reads.entries else ()))


def _most_elements(tensor: n.TensorDecl, level: int, array: StoredArray) -> int:
    """Return the most elements that an array of a level can have. Where coordinates repeat, a level can have an entry for each value."""
    widths = _widths(tensor)
    repeats = any(not other.unique for other in tensor.format.levels[: level + 1])
    fibers, entries = (prod(widths if repeats else widths[:end]) for end in (level, level + 1))
    return int(array.count(fibers, entries))


def _widths(tensor: n.TensorDecl) -> list[int]:
    """Return the most entries of a fiber of each level."""
    rooms = [tensor.room(p) for p in range(len(tensor.shape))]
    return [tensor.size(p) if room is None else room for p, room in enumerate(rooms)]
