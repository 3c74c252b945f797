"""Making a case that fails smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fuseflow.errors import FuseFlowError
from fuseflow.samml import nodes as n
from fuseflow.samml.verify import verify
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor, from_coordinates

from .case import Case, settings

TRIED = 6
"""Other streams that are tried for an input."""


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case found for which `fails` still holds: nothing that it lacks can be taken away alone."""
    while True:
        smaller = next((c for c in _smaller(case) if fails(c)), None)
        if smaller is None:
            return case
        case = smaller


def _smaller(case: Case) -> Iterator[Case]:
    graph, machine = case.graph, case.machine
    plain = Machine(name="random")
    for less in (plain, *(plain.model_copy(update={key: getattr(machine, key)}) for key in ("fifo_depth", "latency", "memory"))):
        if _weight(less) < _weight(machine):
            yield replace(case, machine=less)
    if graph.depths:
        yield replace(case, graph=replace(graph, depths=()))
    if graph.hops:
        yield replace(case, graph=replace(graph, hops=()))
    if graph.turns:
        yield replace(case, graph=replace(graph, turns=()))
    yield from (replace(case, graph=g) for g in _smaller_graphs(graph))
    for k in range(len(graph.depths)):
        yield replace(case, graph=replace(graph, depths=graph.depths[:k] + graph.depths[k + 1 :]))
    for k in range(len(graph.hops)):
        yield replace(case, graph=replace(graph, hops=graph.hops[:k] + graph.hops[k + 1 :]))
    for k in range(len(graph.turns)):
        yield replace(case, graph=replace(graph, turns=graph.turns[:k] + graph.turns[k + 1 :]))
    for name, tensor in case.tensors.items():
        yield from (replace(case, tensors={**case.tensors, name: part}) for part in _smaller_tensors(tensor))


def _weight(machine: Machine) -> int:
    return len(str(settings(machine)))


def _smaller_graphs(graph: n.Graph) -> Iterator[n.Graph]:
    """Without one output, or without one node that nobody reads, each with all that is then useless."""
    for output in graph.outputs:
        yield _without(graph, {node.name for node in graph.nodes if getattr(node, "tensor", None) == output})
    read = {port.node for node in graph.nodes for port in node.inputs}
    for node in reversed(graph.nodes):
        if node.name not in read and not isinstance(node, n.WriteLevel | n.WriteValues | n.Root):
            yield _without(graph, {node.name})
    yield from _rewired(graph)


def _rewired(graph: n.Graph) -> Iterator[n.Graph]:
    """With one input that reads an earlier stream of the same type: what it read before may then be useless."""
    types = list(graph.types().items())
    place = {port: at for at, (port, _) in enumerate(types)}
    for at, node in enumerate(graph.nodes):
        for k, port in enumerate(node.inputs):
            _, wanted = types[place[port]]
            for earlier in [other for other, kind in types[: place[port]] if kind == wanted][:TRIED]:
                changed = replace(node, inputs=(*node.inputs[:k], earlier, *node.inputs[k + 1 :]))
                found = replace(graph, nodes=(*graph.nodes[:at], changed, *graph.nodes[at + 1 :]))
                if _verifies(found):
                    yield found


def _without(graph: n.Graph, gone: set[str]) -> n.Graph:
    nodes = tuple(node for node in graph.nodes if node.name not in gone)
    used = {node.tensor for node in nodes if hasattr(node, "tensor")}
    return replace(
        graph,
        nodes=nodes,
        tensors=tuple(t for t in graph.tensors if t.name in used),
        outputs=tuple(name for name in graph.outputs if name in used),
        fiber_fifos=tuple(edge for edge in graph.fiber_fifos if edge.node not in gone),
        depths=tuple((edge, depth) for edge, depth in graph.depths if edge.node not in gone),
        hops=tuple((edge, hops) for edge, hops in graph.hops if edge.node not in gone),
        turns=tuple((name, turn) for name, turn in graph.turns if name not in gone),
    )


def _verifies(graph: n.Graph) -> bool:
    try:
        verify(graph)
    except FuseFlowError:
        return False
    return True


def _smaller_tensors(tensor: Tensor) -> Iterator[Tensor]:
    """The first half of the entries, the second half, or all but one."""
    count = tensor.coordinates().shape[1]
    keeps = [
        range(count // 2),
        range(count // 2, count),
        *([k for k in range(count) if k != one] for one in range(min(count, 40))),
    ]
    for keep in keeps if tensor.shape and not tensor.format.all_dense else ():
        if len(keep) < count:
            where, values = tensor.coordinates()[:, list(keep)], tensor.values.reshape(-1, *tensor.tile)[list(keep)]
            yield from_coordinates(tensor.shape, where, values, tensor.format, tensor.fill)
