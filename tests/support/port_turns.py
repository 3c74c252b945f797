"""Random turns of nodes at ports to the memory."""

from __future__ import annotations

import random
from dataclasses import replace

from random_graphs.case import Case

from fuseflow.samml import nodes as n


def asking(graph: n.Graph) -> tuple[str, ...]:
    """The nodes of a graph that ask the memory."""
    return tuple(node.name for node in graph.nodes if isinstance(node, n.TensorUser) and node.asks_memory(graph.declared))


def in_graph(case: Case, seed: int) -> Case:
    """The case with random turns, of one to four, at the nodes that ask the memory, or at some of them."""
    rng = random.Random(f"turns {seed}")
    share = rng.choice((0.3, 1.0, 1.0))
    turns = dict[str, n.Turn]()
    for name in asking(case.graph):
        of = rng.randint(1, 4)
        turn = n.Turn(rng.randrange(of), of)
        if rng.random() < share:
            turns[name] = turn
    return replace(case, graph=case.graph.with_turns(turns))
