"""Random graphs that copy a dense tensor in lanes, each of which writes what it has, and the lines that such a writer sends."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import numpy as np
from memories import at_memory, random_fixed_memory
from random_graphs.case import Case

from fuseflow.samml.nodes import Fork, Graph, Load, Merge, Port, Primitive, Root, Scan, TensorDecl, WriteLevel, WriteValues
from fuseflow.samml.writers import LanePart, lane_writer
from fuseflow.sim import Machine, load_machine
from fuseflow.tensors import DTYPES, Format, from_coordinates
from fuseflow.tile_ops import TileShape

TILES: tuple[TileShape, ...] = ((), (), (), (1, 1), (5, 1), (3, 7), (16, 2))
TYPES = ("f32", "f32", "f64", "f16", "i8", "i4")
SIZES = (1, 2, 3, 5, 9, 17)
EMPTY = 12
"""One graph in so many has an innermost dimension of size 0."""


def random_lane_case(seed: int) -> Case:
    """The graph of a seed, `Y = X` in one to five lanes of one index, on a machine with small FIFOs. Of three one has a memory that
    answers at once, one a fixed one, and one any other."""
    rng = random.Random(f"lanes {seed}")
    shape = tuple(rng.choice(SIZES) for _ in range(rng.choice((1, 2, 2, 3))))
    if seed % EMPTY == EMPTY - 1:
        shape = (*shape[:-1], 0)
    tile = rng.choice(TILES)
    graph = lane_copy(shape, tile, rng.choice(TYPES), rng.randrange(len(shape)), rng.choice((1, 2, 2, 3, 5)))
    values = np.random.default_rng(seed).integers(-8, 8, (prod(shape), *tile)).astype(np.float32)
    format = Format.dense(len(shape))
    tensor = from_coordinates(shape, np.indices(shape).reshape(len(shape), -1), values, format, type=DTYPES["f32"])
    settings = {**load_machine("rda").model_dump(), "fifo_depth": rng.choice((2, 3, 8, 64)), "memory": {"model": "ideal"}}
    if seed % 3 == 1:
        settings["memory"] = random_fixed_memory(rng)
    case = Case(graph, {"X": tensor}, Machine.model_validate(settings))
    return at_memory(case, seed) if seed % 3 == 2 else case


def lane_copy(shape: tuple[int, ...], tile: TileShape, dtype: str, at: int, lanes: int) -> Graph:
    """The graph of `Y = X`, where level `at` is dealt to lanes, and each lane writes what it has."""
    rank, format = len(shape), Format.dense(len(shape))
    nodes: list[Primitive] = [Root("root", ())]
    ref = Port("root")
    for p in range(at + 1):
        nodes += [Scan(f"X{p}", (ref,), "X", p), *([WriteLevel(f"Y{p}", (Port(f"X{p}"),), "Y", p)] if p < at else [])]
        ref = Port(f"X{p}", 1)
    nodes += [Fork("crds", (Port(f"X{at}"),), lanes), Fork("refs", (ref,), lanes)]
    for k in range(lanes):
        crd, ref = Port("crds", k), Port("refs", k)
        for p in range(at, rank):
            if p > at:
                nodes.append(Scan(f"X{p}/{k}", (ref,), "X", p))
                crd, ref = Port(f"X{p}/{k}"), Port(f"X{p}/{k}", 1)
            nodes.append(lane_writer(WriteLevel("", (), "Y", p), f"Y{p}/{k}", (crd,), p - at, k, lanes))
        nodes.append(Load(f"X/{k}", (ref,), "X"))
        nodes.append(lane_writer(WriteValues("", (), "Y"), f"Y/{k}", (Port(f"X/{k}"),), rank - 1 - at, k, lanes))
    tensors = TensorDecl("X", shape, format, tile=tile), TensorDecl("Y", shape, format, dtype, tile=tile)
    return Graph("lanes", tensors, tuple(nodes), ("Y",))


def written_once(graph: Graph) -> Graph:
    """The same graph with its lanes merged before one writer of each level, and one of the values."""
    lanes = [node for node in graph.nodes if node.name.startswith("Y") and "/" in node.name]
    nodes: list[Primitive] = [node for node in graph.nodes if node not in lanes]
    for name in dict.fromkeys(node.name.partition("/")[0] for node in lanes):
        parts = [node for node in lanes if node.name.startswith(f"{name}/")]
        first: object = parts[0]
        nodes.append(Merge(f"merge_{name}", tuple(node.inputs[0] for node in parts), first.levels))  # type: ignore[attr-defined]
        if isinstance(first, WriteLevel):
            nodes.append(WriteLevel(name, (Port(f"merge_{name}"),), "Y", first.level))
        else:
            nodes.append(WriteValues(name, (Port(f"merge_{name}"),), "Y"))
    return replace(graph, nodes=tuple(nodes))


def lines_sent(elements: int, part: LanePart, bits: int, line_bits: int) -> list[int]:
    """The lines that a lane sends, in order: each line of an element once the element that follows has nothing in it."""
    if not elements:
        return []
    places = [part.first + n // part.run * (part.run + part.gap) + n % part.run for n in range(elements + 1)]
    touched = [sorted({bit // line_bits for bit in (place * bits, place * bits + bits - 1)}) for place in places]
    spans = [range(lines[0], lines[-1] + 1) for lines in touched]
    sent = [line for n in range(elements) for line in spans[n] if line != spans[n + 1][0] or n == elements - 1]
    return sent
