"""Run a program, or a graph, on both simulators, which must say the same; programs are checked against the dense interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import numpy as np
import numpy.typing as npt
from random_graphs.compare import differences

import fuseflow as ff
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.samml import text as samml
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Tensor, pack

Dense = npt.NDArray[np.float64]


def program(text: str) -> Program:
    return parse(dedent(text))


def ran(
    text: str | Program, schedule: Schedule | None = None, machine: str | Machine = "ideal", **arrays: Any
) -> tuple[Compiled, Result]:
    """A program, compiled and run: right by the dense interpreter, the same on both simulators."""
    source = program(text) if isinstance(text, str) else text
    compiled = ff.compile(source, tensors=arrays, schedule=schedule or Schedule(), machine=machine)
    result, other = (compiled.run(engine=engine) for engine in ("reference", "fast"))
    for found in (result, other):
        assert found.check is not None and found.check.passed, found.check
    for region, again in zip(result.regions, other.regions, strict=True):
        same(region.simulation, again.simulation)
    return compiled, result


def output(text: str | Program, schedule: Schedule | None = None, **arrays: Any) -> Dense:
    """The only output of a program that is run by `ran`, dense."""
    (tensor,) = ran(text, schedule, **arrays)[1].tensors.values()
    return tensor.to_dense()


def ran_graph(text: str, machine: str | Machine = "ideal", **inputs: Dense | Tensor) -> Simulation:
    """A graph, verified and run, every stream checked, the same on both simulators."""
    graph = samml.parse(text)
    verify(graph)
    hardware = machine if isinstance(machine, Machine) else load_machine(machine)
    result, other = (
        simulate(graph, packed(graph, inputs), hardware, engine=engine, check=True, record=True)
        for engine in ("reference", "fast")
    )
    same(result, other)
    return result


def packed(graph: Graph, inputs: Mapping[str, Dense | Tensor]) -> dict[str, Tensor]:
    declared = graph.declared
    return {n: x if isinstance(x, Tensor) else pack(x, declared[n].format, declared[n].fill) for n, x in inputs.items()}


def same(a: Simulation, b: Simulation) -> None:
    """Two runs agree in cycles, statistics and every stored number."""
    assert not list(differences(a, b))


def emptied(array: Dense, *rows: int, fill: float = 0.0) -> Dense:
    """The array with some rows (or slices) implicit."""
    out = array.copy()
    out[list(rows)] = fill
    return out


def positive(seed: int, *shape: int, density: float = 1.0) -> Dense:
    """Numbers from 1 to 2, some of them 0."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(shape) < density, 1 + rng.random(shape), 0.0)
