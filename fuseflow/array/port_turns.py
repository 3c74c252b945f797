"""Which nodes share a port of an array, and the turns that they take there.

Every port is used before one is shared. Then nodes on outer streams share first, since they fire least. A node with several ports, as for
a tensor that is preloaded, has them alone. Nodes that wait for what another one preloads have none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fuseflow.array.footprint import PORT
from fuseflow.array.settings import ArraySettings
from fuseflow.memory.buffer_assignment import preloaded_readers, preloading_nodes
from fuseflow.samml import nodes as n
from fuseflow.samml.hops import MOST_TURNS


def port_groups(graph: n.Graph, array: ArraySettings) -> tuple[tuple[str, ...], ...]:
    """Return the names of the nodes that share each port that a verified graph takes on an array. They may be more ports than the array
    has. Raises `ArrayError` for a primitive without a row in the footprint."""
    counts = port_counts(graph, array)
    alone = [(name,) for name, count in counts.items() if count > 1 for _ in range(count)]
    sharing = [name for name, count in counts.items() if count == 1]
    ports = min(len(sharing), array.available[array.ports.kind] - len(alone))
    ports = max(ports, -(-len(sharing) // array.ports.share))
    return (*alone, *_grouped(graph, sharing, ports, array.ports.share))


def port_counts(graph: n.Graph, array: ArraySettings) -> Mapping[str, int]:
    """Return how many ports each node asks, without nodes that ask none."""
    rows, tensors = array.rows, graph.declared
    asked = {node.name: rows.tiles(node, tensors).get(PORT, 0) for node in graph.nodes}
    preloads = {**dict.fromkeys(preloaded_readers(graph), 0), **preloading_nodes(graph)}
    return {name: preloads.get(name, count) for name, count in asked.items() if count and preloads.get(name, count)}


def port_streams(graph: n.Graph, array: ArraySettings) -> int:
    """Return how many nodes ask ports, of which `share` have room at each; one with several ports leaves no room there. Raises
    `ArrayError` for a primitive without a row in the footprint."""
    return sum(1 if count == 1 else count * array.ports.share for count in port_counts(graph, array).values())


def with_turns(graph: n.Graph, array: ArraySettings) -> n.Graph:
    """Return a verified graph with the turns of its nodes at the ports of an array, whether or not it has them all (`capacity`). Raises
    `ArrayError` for a primitive without a row in the footprint."""
    groups = port_groups(graph, array)
    return graph.with_turns({name: n.Turn(turn, len(group)) for group in groups for turn, name in enumerate(group)})


def port_remedies(graph: n.Graph, array: ArraySettings) -> tuple[str, ...]:
    """Return the options with which a graph needs fewer ports, and how many; and the share with which an array has enough."""
    available, remedies = array.available[array.ports.kind], list[str]()
    if preloads := _preloads(graph):
        count = len(port_groups(_preloaded(graph, preloads), array))
        remedies.append(f"`{' '.join(f'--preload {name}=1' for name in preloads)}` ({count} ports)")
    counts = tuple(port_counts(graph, array).values())
    sharing, left = counts.count(1), available - sum(count for count in counts if count > 1)
    if left > 0 and sharing <= left * MOST_TURNS:
        remedies.append(f"`ports: {{share: {-(-sharing // left)}}}` in the array file ({sharing} streams at {left} ports)")
    return tuple(remedies)


def _preloads(graph: n.Graph) -> tuple[str, ...]:
    """Return the tensors that several nodes look up, and that can be preloaded for all of these."""
    dense = [tensor.name for tensor in graph.tensors if tensor.name in graph.inputs and _can_be_preloaded(tensor)]
    waiting = preloaded_readers(_preloaded(graph, dense))
    readers = Counter(node.tensor for node in graph.nodes if isinstance(node, n.Load) and node.name in waiting)
    return tuple(name for name in dense if readers[name] > 1)


def _can_be_preloaded(tensor: n.TensorDecl) -> bool:
    placed = tensor.resident or tensor.scratchpad or tensor.preload
    return not placed and not any(tensor.stored_arrays(level) for level in range(len(tensor.format.levels)))


def _preloaded(graph: n.Graph, names: Collection[str]) -> n.Graph:
    """Return the graph with these tensors preloaded by one port each."""
    return replace(graph, tensors=tuple(replace(t, preload=1, buffer=0) if t.name in names else t for t in graph.tensors))


def _grouped(graph: n.Graph, names: Sequence[str], ports: int, share: int) -> list[tuple[str, ...]]:
    """Return the names in this number of groups of at most `share`. Of a group, the load is its size times the weight of its heaviest
    node, which doubles with each level of the innermost stream of the node. The largest load is the least that there can be."""
    if ports >= len(names):
        return [(name,) for name in names]
    weights = {name: 1 << _depth(graph, name) for name in names}
    heaviest_first = sorted(names, key=lambda name: -weights[name])
    loads = sorted({size * weight for weight in weights.values() for size in range(1, share + 1)})
    least = bisect_left(loads, True, key=lambda load: len(_packed(heaviest_first, weights, load, share)) <= ports)
    groups = _packed(heaviest_first, weights, loads[least], share)
    while len(groups) < ports:  # so some group has two nodes
        at = max(range(len(groups)), key=lambda k: (len(groups[k]) > 1, len(groups[k]) * weights[groups[k][0]]))
        middle = len(groups[at]) // 2
        groups[at : at + 1] = [groups[at][:middle], groups[at][middle:]]
    return groups


def _packed(names: Sequence[str], weights: Mapping[str, int], load: int, share: int) -> list[tuple[str, ...]]:
    """Return the names, the heaviest first, in groups that are as large as the load and the share let them be."""
    groups: list[tuple[str, ...]] = []
    at = 0
    while at < len(names):
        size = min(share, max(1, load // weights[names[at]]))
        groups.append(tuple(names[at : at + size]))
        at += size
    return groups


def _depth(graph: n.Graph, name: str) -> int:
    """Return the depth of the innermost stream of a node."""
    node, types = graph.by_name[name], graph.types()
    return max(types[port].depth for port in (*node.inputs, *node.ports))
