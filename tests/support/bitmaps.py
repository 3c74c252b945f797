"""The bitmap mode of the generators: a case that was drawn, with some of its levels stored as bitmaps, and in graphs some of the
outermost ones compressed, which locates keep.

What a seed draws stays as it is without this mode; with it, the same graph or program gets other formats afterwards.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from random_graphs import Case as GraphCase
from random_programs import Case as ProgramCase

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import GraphError
from fuseflow.samml.nodes import Graph, Locate, Primitive, TensorDecl
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format, Tensor, from_coordinates
from fuseflow.tensors.levels import LEVELS
from fuseflow.tensors.pack import repack

SHARE = 0.6
"""Of the levels that are compressed, those that become bitmaps."""
DENSE = 0.3
"""Of the dense levels that a graph reads, those that it is tried with as bitmaps: their scans then skip, and their locates miss."""
KEPT = 0.6
"""Of those that are outermost, the levels that it is tried with as compressed: their locates keep them."""


def in_graph(case: GraphCase, seed: int) -> GraphCase:
    """The case with bitmaps for compressed levels of what it reads and writes, and for dense ones where it still verifies."""
    rng = random.Random(f"bitmap {seed}")
    declared = {decl.name: replace(decl, format=with_bitmaps(decl.format, rng)) for decl in case.graph.tensors}
    tensors = {name: repack(tensor, declared[name].format) for name, tensor in case.tensors.items()}
    case = replace(case, graph=_declaring(case.graph, declared), tensors=tensors)
    for name in case.graph.inputs if not any(_needs_all(case.graph.declared[y].format) for y in case.graph.outputs) else ():
        for p, level in enumerate(case.graph.declared[name].format.levels):
            if level.full and rng.random() < DENSE:
                case = _thinned(case, name, p, rng) or case
        if case.graph.declared[name].format.levels[:1] == (LEVELS["dense"],) and rng.random() < KEPT:
            case = _thinned(replace(case, graph=_by_coordinates(case.graph, name)), name, 0, rng, "compressed") or case
    return case


def _needs_all(format: Format) -> bool:
    """Whether a result has a dense level above a stored one, which must get every coordinate."""
    return any(above.full and not below.full for above, below in pairwise(format.levels))


def _by_coordinates(graph: Graph, tensor: str) -> Graph:
    """The graph in which locates of the outermost level of a tensor take coordinates alone."""

    def alone(node: Primitive) -> Primitive:
        located = isinstance(node, Locate) and (node.tensor, node.level) == (tensor, 0)
        return replace(node, inputs=node.inputs[:1]) if located else node

    return replace(graph, nodes=tuple(map(alone, graph.nodes)))


def _thinned(case: GraphCase, name: str, p: int, rng: random.Random, stored: str = "bitmap") -> GraphCase | None:
    """The case with a level that is `stored` for a dense one, and fewer entries; None if it takes that for every coordinate."""
    decl = case.graph.declared[name]
    levels = (*decl.format.levels[:p], LEVELS[stored], *decl.format.levels[p + 1 :])
    format = Format(levels, decl.format.order)
    graph = _declaring(case.graph, {**case.graph.declared, name: replace(decl, format=format)})
    try:
        verify(graph)
    except GraphError:
        return None
    tensor = case.tensors[name]
    kept = np.random.default_rng(rng.getrandbits(32)).random(tensor.stored) < 0.7
    thinner = from_coordinates(tensor.shape, tensor.coordinates()[:, kept], tensor.values[kept], format, tensor.fill)
    return replace(case, graph=graph, tensors={**case.tensors, name: thinner})


def _declaring(graph: Graph, declared: Mapping[str, TensorDecl]) -> Graph:
    return replace(graph, tensors=tuple(declared[decl.name] for decl in graph.tensors))


def in_program(case: ProgramCase) -> ProgramCase:
    """The case with bitmaps for compressed levels of its inputs and its declared results."""
    rng = random.Random(zlib.crc32(repr(case).encode()))
    declared = tuple(_type(type_, rng) for type_ in case.program.tensors)
    formats = {type_.name: type_.format for type_ in declared}
    tensors = {name: _stored(tensor, formats.get(name)) for name, tensor in case.tensors.items()}
    return replace(case, program=replace(case.program, tensors=declared), tensors=tensors)


def _type(type_: TensorType, rng: random.Random) -> TensorType:
    return type_ if type_.format is None else replace(type_, format=with_bitmaps(type_.format, rng))


def _stored(tensor: Tensor, format: Format | None) -> Tensor:
    return tensor if format is None else repack(tensor, format)


def with_bitmaps(format: Format, rng: random.Random) -> Format:
    """The format with some compressed levels stored as bitmaps. Those above singleton levels stay."""
    levels = tuple(LEVELS["bitmap"] if level.text == "compressed" and rng.random() < SHARE else level for level in format.levels)
    return Format(levels, format.order)
