"""Cases whose values are tiles: the graph and the coordinates of one with scalars, other numbers, and in part operators of tiles."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.tensors import Tensor, from_coordinates
from fuseflow.tile_ops import TILE_OPERATORS, Tile, result_tile

from .case import Case

SHAPES: tuple[Tile, ...] = ((2, 2), (2, 2), (2, 3), (1, 4), (3, 1), (1, 1))


def tiled(case: Case, rng: random.Random, numbers: np.random.Generator) -> Case:
    """The case with tiles of one shape, and columns of their height; the case itself where lanes would differ."""
    graph, shape = case.graph, rng.choice(SHAPES)
    column = (shape[0], 1)
    tiles = {name: rng.choice((shape, shape, column)) for name in graph.inputs}
    declared = {decl.name: replace(decl, tile=tiles.get(decl.name, ())) for decl in graph.tensors}
    types: dict[n.Port, n.StreamType] = {}
    nodes = []
    for old in graph.nodes:
        inputs = [types[port] for port in old.inputs]
        node = _on_tiles(old, inputs, (shape, column), rng)
        if isinstance(node, n.Merge) and len(set(inputs)) > 1:
            return case
        if isinstance(node, n.WriteValues):
            decl = declared[node.tensor]
            declared[node.tensor] = replace(decl, tile=inputs[0].tile, dtype="f64" if decl.dtype[0] == "i" else decl.dtype)
        nodes.append(node)
        types |= {n.Port(node.name, k): type_ for k, type_ in enumerate(node.typed(inputs, declared))}
    tensors = {name: _in_tiles(tensor, tiles[name], numbers) for name, tensor in case.tensors.items()}
    return replace(case, graph=replace(graph, nodes=tuple(nodes), tensors=tuple(declared.values())), tensors=tensors)


def _on_tiles(node: n.Node, inputs: list[n.StreamType], shapes: tuple[Tile, ...], rng: random.Random) -> n.Node:
    """The node, or one that takes the same streams: operators are exchanged, nothing is dropped by value."""
    match node:
        case n.Drop():
            return replace(node, value=None)
        case n.Alu() if len(inputs) == len(node.operands) and rng.random() < 0.5:
            fitting = [name for name in TILE_OPERATORS if result_tile(name, [x.tile for x in inputs]) in shapes]
            return replace(node, function=rng.choice(fitting)) if fitting else node
    return node


def _in_tiles(tensor: Tensor, tile: Tile, numbers: np.random.Generator) -> Tensor:
    """Each value with others of the tensor around it."""
    values = tensor.values.reshape(-1)
    around = values[numbers.integers(0, max(len(values), 1), (len(values), *tile))]
    around[:, 0, 0] = values
    return from_coordinates(tensor.shape, tensor.coordinates(), around, tensor.format, tensor.fill)
