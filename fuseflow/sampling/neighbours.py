"""How many rows run before a sampled row, so that it has the neighbours in the pipeline that it has in the loop.

    32 rows of 24 entries, 32 rows of 2, 32 of 24, ...     where a row is long, its product is the slowest stage; where not, what follows

FIFOs hold rows that are in flight. So a stage that is slow in one row catches up in the next ones, in which another stage is
slow. Sampled rows therefore have the rows of the loop before them, in their order, and the time of these rows is not measured.
There are several times as many of them as FIFOs hold: a stage that is faster than the next one by a share of x takes 1 / x times
as many rows to fill the FIFOs between both.
"""

from __future__ import annotations

from math import ceil

import networkx as nx
import numpy as np

from fuseflow.samml.nodes import Graph
from fuseflow.sampling.weights import IndexWeights

RARELY = 0.01
"""A stage is ignored if the rows in which it is the slowest have at most this share of all weight."""
WASHOUT = 5
"""The rows before the measured ones, as a multiple of the rows that FIFOs hold. With once as many, rows whose number of entries
rises and falls slowly were 4.5 % too fast, with two and a half times as many 0.2 %."""


def least_warmup(held: float) -> int:
    """Return how many rows must run before the measured rows, if FIFOs hold `held` rows."""
    return max(1, ceil(WASHOUT * held))


def rows_in_fifos(graph: Graph, loop: IndexWeights, depth: int) -> float:
    """Return how many rows of a loop FIFOs hold between stages that take turns in being the slowest. The deepest FIFO has `depth`
    slots. `graph` is the graph of one lane.

    A FIFO holds the rows to which its tokens belong, and the rows of the FIFOs on a path between two stages add up. The path that
    holds the fewest rows limits how far apart the stages get.
    """
    network: nx.Graph[str] = nx.Graph()
    for node in graph.nodes:
        for port in node.inputs:
            if port in loop.tokens:
                rows = depth / max(1.0, loop.tokens[port])
                known = network.get_edge_data(port.node, node.name, {"rows": rows})["rows"]
                network.add_edge(port.node, node.name, rows=min(rows, known))
    slowest = loop.stages.argmax(axis=0) if len(loop.stages) else np.array([], int)
    share = np.bincount(slowest, weights=loop.stages.max(axis=0, initial=0), minlength=len(loop.stages))
    nodes = [_nodes(graph, loop, int(stage)) for stage in np.flatnonzero(share > RARELY * share.sum())]
    between = [_rows_between(network, one, nodes[k + 1 :]) for k, one in enumerate(nodes)]
    return max(between, default=0.0)


def _nodes(graph: Graph, loop: IndexWeights, stage: int) -> set[str]:
    """Return the names of the nodes that make or take the tokens of the stage with this number."""
    ports = set(loop.streams[stage])
    return {port.node for port in ports} | {node.name for node in graph.nodes if ports.intersection(node.inputs)}


def _rows_between(network: nx.Graph[str], one: set[str], others: list[set[str]]) -> float:
    """Return how many rows FIFOs hold between the stage of the nodes `one` and the farthest of the other stages."""
    rows = nx.multi_source_dijkstra_path_length(network, one & set(network), weight="rows") if one & set(network) else {}
    return max((min((rows[node] for node in other if node in rows), default=0.0) for other in others), default=0.0)
