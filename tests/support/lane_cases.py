"""Random cases with writers of lanes: a dense tensor that is copied, in lanes of one of its levels, as scalars or tiles.

Sizes, tiles and lines are such that rows do and do not fill lines, and that elements lie in one, in two and in many of them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import numpy as np
import single_floats
from hardware_cases import MemoryKind, hardware_machine
from memories import at_dram, at_memory, random_fixed_memory
from random_graphs import Case

from fuseflow.samml import nodes as n
from fuseflow.samml.verify import verify
from fuseflow.samml.writers import lane_writer
from fuseflow.sim import Machine
from fuseflow.tensors import Format, from_coordinates
from fuseflow.tile_ops import TileShape

LANES = (1, 2, 2, 3, 3, 4, 7)
SIZES = (1, 2, 3, 4, 5, 8, 9, 17)
TILES: tuple[TileShape, ...] = ((), (), (), (1, 1), (1, 3), (2, 2), (2, 3), (3, 3), (4, 4), (5, 5), (8, 8))
MOST = 400
"""Entries of the tensor."""


def lane_case(seed: int, memory: MemoryKind = "ideal") -> Case:
    """The case of a seed. Of two one computes in 32-bit floats."""
    rng = random.Random(f"lanes {seed}")
    shape = tuple(rng.choice(SIZES) for _ in range(rng.randint(1, 3)))
    while prod(shape) > MOST:
        shape = tuple(max(size // 2, 1) for size in shape)
    level, tile, lanes, dtype = rng.randrange(len(shape)), rng.choice(TILES), rng.choice(LANES), rng.choice(("f32", "f64"))
    case = written_case(shape, tile, level, lanes, hardware_machine(seed), dtype)
    case = single_floats.in_graph(case) if seed % 2 else case
    if memory == "ideal":
        return case
    if memory == "dram":
        return at_dram(case, seed)
    if memory == "any" and rng.random() < 0.6:
        return at_memory(case, seed)
    return replace(case, machine=case.machine.model_copy(update={"memory": random_fixed_memory(rng)}))


def written_case(shape: tuple[int, ...], tile: TileShape, level: int, lanes: int, machine: Machine, dtype: str = "f32") -> Case:
    """The case of a tensor that is copied with a level dealt to lanes."""
    graph = written_in_lanes(copy_graph(shape, tile, dtype), "y", level, lanes)
    verify(graph)
    values = np.arange(prod(shape) * prod(tile), dtype=np.float32 if dtype == "f32" else np.float64)
    where = np.indices(shape).reshape(len(shape), -1)
    tensor = from_coordinates(shape, where, values.reshape(-1, *tile), graph.declared["x"].format)
    return Case(graph, {"x": tensor}, machine)


def copy_graph(shape: tuple[int, ...], tile: TileShape, dtype: str) -> n.Graph:
    """The graph that copies a dense tensor x to y."""
    decls = tuple(n.TensorDecl(name, shape, Format.parse("dense", len(shape)), dtype, tile=tile) for name in "xy")
    nodes: list[n.Primitive] = [n.Root("root", ())]
    above = n.Port("root")
    for level in range(len(shape)):
        nodes.append(n.Scan(f"x_{level}", (above,), "x", level))
        nodes.append(n.WriteLevel(f"y_{level}", (n.Port(f"x_{level}"),), "y", level))
        above = n.Port(f"x_{level}", 1)
    nodes += [n.Load("x_v", (above,), "x"), n.WriteValues("y_v", (n.Port("x_v"),), "y")]
    return n.Graph("copy", decls, tuple(nodes), ("y",))


def written_in_lanes(graph: n.Graph, tensor: str, level: int, lanes: int) -> n.Graph:
    """The graph with the coordinates of a level of a dense result dealt to lanes, each of which writes what it has. What is below them is
    aligned to each lane."""
    rank = graph.declared[tensor].format.rank
    writers = {node: rank - 1 for node in graph.nodes if isinstance(node, n.WriteValues) and node.tensor == tensor}
    writers |= {node: node.level for node in graph.nodes if isinstance(node, n.WriteLevel) and node.tensor == tensor}
    below = {node: depth for node, depth in writers.items() if depth >= level}
    dealt = next(node.inputs[0] for node, depth in below.items() if isinstance(node, n.WriteLevel) and depth == level)
    made: list[n.Primitive] = []
    for node, depth in below.items():
        if depth == level:
            made.append(n.Fork(f"{node.name}_fork", node.inputs, lanes))
    fork = next(node.name for node in made if node.inputs[0] == dealt)
    for node, depth in below.items():
        for k in range(lanes):
            lane = n.Port(f"{node.name}_fork", k)
            if depth > level:
                lane = n.Port(f"{node.name}_in{k}")
                made.append(n.Align(lane.node, (dealt, n.Port(fork, k), node.inputs[0])))
            made.append(lane_writer(node, f"{node.name}_lane{k}", (lane,), depth - level, k, lanes))
    return replace(graph, nodes=(*(node for node in graph.nodes if node not in below), *made))
