"""How many coordinates in a row are taken together, so that a row has the neighbours in the pipeline that it has in the loop.

    32 rows of 24 entries, 32 rows of 2, 32 of 24, ...     where a row is long, its product is the slowest stage; where not, what follows

FIFOs hold rows that are in flight. So a stage that is slow in one row catches up in the next ones, in which another stage is slow. Where
rows are drawn one by one, long rows come beside short ones, and both stages are busy all the time; in the loop they wait for each other for
32 rows. Intervals of 1 % were 3 % low there, and with FIFOs of 4,096 tokens and 3,000 rows of a kind 24 %.

Both are looked at in a model: so many rows as FIFOs hold take as long as their slowest stage together. If the loop takes another time there
than its rows in units in a random order, units are made longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np
import numpy.typing as npt

from fuseflow.samml.nodes import Graph
from fuseflow.sampling.interval import SYSTEMATIC
from fuseflow.sampling.weights import IndexWeights

Works = npt.NDArray[np.float64]
RARELY = 0.01
"""A stage that is the slowest in rows of so small a share of all weight is never looked at."""
ORDERS = 4
"""The random orders that the loop is compared with."""
SPREADS = 3
"""A loop differs from random orders if it is so many of their standard deviations away from their mean."""


def row_stages(graph: Graph, loop: IndexWeights, depth: int) -> RowStages:
    """Return the stages of a loop whose deepest FIFO has so many slots. `graph` is that of one lane.

    A FIFO holds as many rows as its tokens are of, and those on a path between two stages add up. The path that holds the fewest keeps the
    stages together.
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
    return RowStages(loop.stages, 1 + int(max(between, default=0)))


def _nodes(graph: Graph, loop: IndexWeights, stage: int) -> set[str]:
    """Return the nodes that make or take the tokens of a stage."""
    ports = set(loop.streams[stage])
    return {port.node for port in ports} | {node.name for node in graph.nodes if ports.intersection(node.inputs)}


def _rows_between(network: nx.Graph[str], one: set[str], others: list[set[str]]) -> float:
    """Return how many rows FIFOs hold between a stage and the one of some others that is the farthest from it."""
    rows = nx.multi_source_dijkstra_path_length(network, one & set(network), weight="rows") if one & set(network) else {}
    return max((min((rows[node] for node in other if node in rows), default=0.0) for other in others), default=0.0)


@dataclass(frozen=True, slots=True)
class RowStages:
    """The `works` of a loop: the cycles of each stage, at each coordinate. So many rows are `in_flight`: one, and those that FIFOs hold."""

    works: Works
    in_flight: int

    def least_unit(self, unit: int) -> int:
        """Return how many coordinates make a unit, so many or more, so that their order is no matter."""
        while unit < self.works.shape[1] and self._order_matters(unit):
            unit *= 2
        return unit

    def _order_matters(self, unit: int) -> bool:
        """Return whether the loop takes another time than its coordinates in units of so many, in a random order."""
        slowest = float(self.works.max(axis=0, initial=0).sum())
        if slowest - float(self.works.sum(axis=1).max(initial=0)) <= SYSTEMATIC * slowest:
            return False  # one stage is the slowest everywhere
        rng = np.random.default_rng(0)
        orders = [self.works[:, _shuffled(self.works.shape[1], unit, rng)] for _ in range(ORDERS)]
        for rows in self._windows():
            loop, others = _cycles(self.works, rows), [_cycles(works, rows) for works in orders]
            off = abs(float(np.mean(others)) - loop)
            if off > SYSTEMATIC * loop and off > SPREADS * float(np.std(others)):
                return True
        return False

    def _windows(self) -> Iterator[int]:
        """Yield how many rows may take their time together: all that are in flight, or fewer, since some FIFOs hold fewer rows."""
        rows = min(self.in_flight, self.works.shape[1])
        while rows >= 2:
            yield rows
            rows //= 2


def _shuffled(coordinates: int, unit: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the coordinates in units of so many in a row, in a random order."""
    starts = rng.permutation(np.arange(0, coordinates, unit))
    order = (starts[:, None] + np.arange(unit)).reshape(-1)
    return order[order < coordinates]


def _cycles(works: Works, rows: int) -> float:
    """Return the cycles of a loop if so many rows take as long as their slowest stage together, wherever the first of them begins."""
    sums = np.zeros((works.shape[0], works.shape[1] + 1))
    np.cumsum(works, axis=1, out=sums[:, 1:])
    total = 0.0
    for begin in (rows, rows // 2):
        ends = np.append(np.arange(begin, works.shape[1], rows), works.shape[1])
        total += float(np.diff(sums[:, ends], axis=1, prepend=0).max(axis=0).sum())
    return total / 2
