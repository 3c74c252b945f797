"""Random graphs with data and a machine: verified, and composed of every primitive in ways that the compiler never emits.

`random_case(seed)` is one case, always the same. `describe` prints a case as Python text, `shrink` makes one that fails smaller,
`coverage.modes` names what a graph exercises.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal

import dataflow
import numpy as np

from fuseflow.samml.nodes import Edge, Graph, Select

from .builder import Builder
from .case import Case, describe
from .data import random_source, tensor
from .loops import meet, scan, spine
from .productions import PRODUCTIONS, SELECTING, Production
from .shrink import shrink
from .tiles import tiled
from .writers import write_all

__all__ = ["Case", "Size", "describe", "random_case", "shrink"]

Size = Literal["small", "medium", "large"]
"""Some 10 to 300, 2,000 and 30,000 firings."""
ROOM: dict[Size, float] = {"small": 150, "medium": 1200, "large": 15000}
SIZES: dict[Size, tuple[int, ...]] = {
    "small": (0, 1, 2, 2, 3, 3),
    "medium": (1, 2, 3, 3, 4, 5, 7),
    "large": (2, 5, 12, 40, 150, 1300),
}
SELECTED = (1, 2, 3, 4, 5, 7)
"""Sizes of small graphs of which selections leave entries out."""
BY_HAND = ("outer_product", "pruned", "reshaped", "normalized", "aligned")
"""Graphs of `dataflow` that are cases too."""

TILED = 0.2
"""Share of the cases whose values are tiles."""


def random_case(seed: int, size: Size | None = None, select: bool = False) -> Case:
    """The case of a seed; without `size`, one of fifty is large and a third are small. `select`: it has a `select`, and no tiles, and
    is another case than without."""
    rng = random.Random(f"select {seed}" if select else seed)
    size = size or rng.choices(("small", "medium", "large"), (16, 33, 1))[0]
    numbers = np.random.default_rng(seed)
    if not select and rng.random() < 0.05:
        graph = dataflow.graph(rng.choice(BY_HAND))
        tensors = dataflow.inputs(graph, numbers, rng.choice((0.0, 0.5, 1.0)))
    else:
        builder = _grown(rng, size, select)
        graph = _graph(builder)
        tensors = {name: tensor(builder.sources[name], numbers) for name in graph.inputs}
    machine = dataflow.random_machine(rng, (None, None, 1, 2, 5))
    case = Case(_with_depths(graph, rng), tensors, machine)
    return tiled(case, rng, numbers) if not select and size != "large" and rng.random() < TILED else case


def _grown(rng: random.Random, size: Size, select: bool) -> Builder:
    """A builder after a random number of productions. Each case has productions of its own that it prefers and that it lacks. With
    `select` it grows until it has one."""
    builder = _grown_once(rng, size, SELECTING if select else {})
    while select and not any(isinstance(node, Select) for node in builder.nodes):
        builder = _grown_once(rng, size, SELECTING)
    return builder


def _grown_once(rng: random.Random, size: Size, more: Mapping[str, tuple[float, Production]]) -> Builder:
    sizes = tuple(rng.choices(SELECTED if more and size == "small" else SIZES[size], k=2))
    ranks = [0, *rng.choices((1, 2, 3, 4), (3, 4, 4, 4), k=rng.randint(1, 4))]
    sources = {name: random_source(rng, name, sizes, rank) for name, rank in zip("CABXW", ranks, strict=False)}
    room = rng.uniform(0.2, 1.0) * ROOM[size]
    builder = Builder(rng, sources, sizes, room / 2, room)
    weights = [weight * rng.choice((0.0, 1.0, 1.0, 4.0)) for weight, _ in PRODUCTIONS.values()]
    weights += [weight for weight, _ in more.values()]
    table = [production for _, production in (*PRODUCTIONS.values(), *more.values())]
    first = rng.choices((scan, spine, meet), k=rng.randint(1, 4))
    for production in (*first, *rng.choices(table, weights, k=rng.randint(6, 60))):
        if builder.room <= 0:
            break
        production(builder)
    write_all(builder)
    return builder


def _graph(builder: Builder) -> Graph:
    read = {node.tensor for node in builder.nodes if hasattr(node, "tensor")}
    declared = [source.decl for name, source in builder.sources.items() if name in read]
    outputs = tuple(decl.name for decl in builder.outputs)
    return Graph("random", (*declared, *builder.outputs), tuple(builder.nodes), outputs)


def _with_depths(graph: Graph, rng: random.Random) -> Graph:
    """FIFO depths of single edges: none, a few or all."""
    share = rng.choice((0.0, 0.0, 0.15, 0.5, 1.0))
    choices = rng.choice(((1,), (2,), (5,), (1, 2, 5), (1, 2, 5, 40)))
    edges = (Edge(node.name, k) for node in graph.nodes for k in range(len(node.inputs)))
    depths = tuple((edge, rng.choice(choices)) for edge in edges if rng.random() < share)
    return Graph(graph.name, graph.tensors, graph.nodes, graph.outputs, graph.fiber_fifos, depths)
