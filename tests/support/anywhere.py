"""Random graphs on machines of every kind."""

from __future__ import annotations

from dataclasses import replace

from memories import at_memory
from random_graphs import random_case
from random_graphs.case import Case

from fuseflow.sim import load_machine


def anywhere(seed: int) -> Case:
    """A random graph: as it is, at a memory that takes time, or on `comal`, whose FIFOs have no depths."""
    case = random_case(seed)
    if seed % 3 == 1:
        return at_memory(case, seed)
    if seed % 3 == 2:
        return replace(case, graph=replace(case.graph, depths=()), machine=load_machine("comal"))
    return case
