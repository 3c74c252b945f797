"""Random resident inputs of graphs and of programs."""

from __future__ import annotations

import random
from dataclasses import replace

from random_graphs.case import Case

from fuseflow.einsum.nodes import Program
from fuseflow.samml.auxiliary_tensors import is_auxiliary


def in_graph(case: Case, seed: int, share: float = 0.5) -> Case:
    """The case with each of its inputs resident, or not."""
    rng, graph = random.Random(f"resident {seed}"), case.graph
    names = {name for name in graph.inputs if rng.random() < share and not is_auxiliary(graph.declared[name])}
    return replace(case, graph=replace(graph, tensors=tuple(replace(t, resident=t.name in names) for t in graph.tensors)))


def of_program(program: Program, seed: int) -> tuple[str, ...]:
    """Some inputs of a program that are read, one at least."""
    rng, read = random.Random(f"resident {seed}"), {name for e in program.einsums for name in e.operands}
    names = [t.name for t in program.inputs if t.name in read]
    return tuple(rng.sample(names, rng.randint(1, len(names)) if names else 0))
