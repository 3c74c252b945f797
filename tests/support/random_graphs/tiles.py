"""Cases whose values are tiles: the graph and the coordinates of one with scalars, other numbers, and in part operators of tiles."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.tensors import Tensor, from_coordinates
from fuseflow.tile_ops import TILE_OPERATORS, TileShape, result_shape

from .case import Case

SIDES = (1, 2, 2, 3, 5)
UNARY = tuple(name for name, row in TILE_OPERATORS.items() if row.arity == 1)


def tiled(case: Case, rng: random.Random, numbers: np.random.Generator) -> Case:
    """The case with tiles of a few shapes, and rows, columns and scalars that fit them. Where streams of different shapes meet in a node
    that does not take them, other nodes are put before it."""
    graph, growth = case.graph, _Growth(rng)
    rows, columns = rng.choice(SIDES), rng.choice(SIDES)
    shapes: list[TileShape] = [(rows, columns), (rows, columns), (columns, rows), (rows, 1), (1, columns), (1, 1), ()]
    tiles = {name: rng.choice(shapes[: rng.choice((2, 3, 7))]) for name in graph.inputs}
    growth.tensors = {decl.name: replace(decl, tile=tiles.get(decl.name, ())) for decl in graph.tensors}
    for node in graph.nodes:
        growth.take_over(node)
    tensors = {name: _in_tiles(tensor, tiles[name], numbers) for name, tensor in case.tensors.items()}
    changed = replace(graph, nodes=tuple(growth.nodes), tensors=tuple(growth.tensors.values()))
    return replace(case, graph=changed, tensors=tensors)


class _Growth:
    """The nodes so far, and the types of what they make."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes: list[n.Node] = []
        self.types: dict[n.Port, n.StreamType] = {}
        self.tensors: dict[str, n.TensorDecl] = {}

    def add(self, node: n.Node) -> n.Port:
        self.nodes.append(node)
        kinds = node.typed([self.types[port] for port in node.inputs], self.tensors)
        self.types |= {n.Port(node.name, k): kind for k, kind in enumerate(kinds)}
        return n.Port(node.name)

    def tile(self, port: n.Port) -> TileShape:
        return self.types[port].tile

    def take_over(self, node: n.Node) -> None:
        """The node, or one that takes the same streams: operators are exchanged, tiles are not dropped by value."""
        match node:
            case n.Alu():
                node = self._operator(node)
            case n.Drop() if self.tile(node.inputs[-1]):
                node = replace(node, value=None)
            case n.Merge() if len({self.types[port] for port in node.inputs}) > 1:
                node = replace(node, inputs=tuple(self._number(port) for port in node.inputs))
            case n.WriteValues():
                decl = self.tensors[node.tensor]
                dtype = "f64" if decl.dtype[0] == "i" else decl.dtype
                self.tensors[node.tensor] = replace(decl, tile=self.tile(node.inputs[0]), dtype=dtype)
        self.add(node)

    def _operator(self, node: n.Alu) -> n.Alu:
        if self.rng.random() < 0.15:
            node = replace(node, inputs=tuple(self._other(port) for port in node.inputs))
        tiles = [self.tile(port) for port in node.inputs]
        streams = len(tiles) == len(node.operands)
        fitting = [name for name in TILE_OPERATORS if streams and result_shape(name, tiles) is not None]
        fits = result_shape(node.function, tiles) is not None
        if fitting and (not fits or self.rng.random() < 0.4):
            return replace(node, function=self.rng.choice(fitting))
        return node if fits else replace(node, inputs=tuple(self._number(port) for port in node.inputs))

    def _number(self, port: n.Port) -> n.Port:
        """The folds of the rows and columns of a stream of tiles, one into the other."""
        for what in ("row", "col"):
            if self.tile(port):
                port = self._apply(self.rng.choice([name for name in UNARY if name.startswith(what)]), port)
        return port

    def _other(self, port: n.Port) -> n.Port:
        return self._apply(self.rng.choice(UNARY), port) if self.tile(port) else port

    def _apply(self, function: str, port: n.Port) -> n.Port:
        absent = self.rng.choice((0.0, 1.5))
        return self.add(n.Alu(f"{function}{len(self.nodes)}", (port,), function, (n.Operand(absent),)))


def _in_tiles(tensor: Tensor, tile: TileShape, numbers: np.random.Generator) -> Tensor:
    """Each value with others of the tensor around it."""
    if not tile:
        return tensor
    values = tensor.values.reshape(-1)
    around = values[numbers.integers(0, max(len(values), 1), (len(values), *tile))]
    around[:, 0, 0] = values
    return from_coordinates(tensor.shape, tensor.coordinates(), around, tensor.format, tensor.fill)
