"""The mode of the generator of graphs in which machines compute in 32-bit floats: a case that was drawn, with elements that such floats
hold. What a seed draws stays as it is without this mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from random_graphs import Case

from fuseflow.sim.precision import holds, with_rounded_constants
from fuseflow.tensors import Tensor, from_coordinates


def in_graph(case: Case) -> Case:
    """The case in `f32`: tensors whose elements 32-bit floats do not hold have the nearest ones that they do."""
    declared = tuple(replace(t, dtype=t.dtype if holds(t.dtype) else "f32") for t in case.graph.tensors)
    machine = case.machine.model_copy(update={"arithmetic": "f32"})
    graph = with_rounded_constants(replace(case.graph, tensors=declared), machine)
    tensors = {
        name: case.tensors[name]
        if holds(case.graph.declared[name].dtype)
        else _single(case.tensors[name], graph.declared[name].fill)
        for name in case.tensors
    }
    return replace(case, graph=graph, tensors=tensors, machine=machine)


def _single(tensor: Tensor, fill: float) -> Tensor:
    with np.errstate(over="ignore", invalid="ignore"):
        values = tensor.values.astype(np.float32)
    return from_coordinates(tensor.shape, tensor.coordinates(), values, tensor.format, fill)
