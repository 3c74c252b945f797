"""Random preloads of graphs."""

from __future__ import annotations

import random
from dataclasses import replace

from random_graphs.case import Case

from fuseflow.memory.settings import TimedMemory
from fuseflow.samml import nodes as n


def preloadable(graph: n.Graph) -> tuple[str, ...]:
    """The inputs of a graph that are stored dense, and not resident."""
    declared = graph.declared
    return tuple(name for name in graph.inputs if not declared[name].resident and is_dense(declared[name]))


def is_dense(tensor: n.TensorDecl) -> bool:
    return not any(tensor.stored_arrays(level) for level in range(len(tensor.format.levels)))


def in_graph(case: Case, seed: int, share: float = 0.8) -> Case:
    """The case with some of its dense inputs preloaded by one port to nine, at a memory that takes time, with lines of 32 bytes."""
    rng, graph = random.Random(f"preload {seed}"), case.graph
    assert isinstance(case.machine.memory, TimedMemory)
    memory = case.machine.memory.model_copy(update={"line": 32})
    case = replace(case, machine=case.machine.model_copy(update={"memory": memory}))
    ports = {name: rng.choice((1, 1, 2, 3, 4, 8, 9)) for name in preloadable(graph) if rng.random() < share}
    tensors = tuple(
        replace(tensor, preload=ports[tensor.name], buffer=0) if tensor.name in ports else tensor for tensor in graph.tensors
    )
    return replace(case, graph=replace(graph, tensors=tensors))
