"""A NaN in a graph has no sign, and a graph with one equals itself, in every written form and after a second compilation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.samml import nodes as n
from fuseflow.samml.mlir import from_mlir, to_mlir
from fuseflow.samml.protobuf import from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show

PROGRAM = "tensor A[6, 5] csr\nT[i, j] = log(A[i, j] - 1)\nY[i, j] = T[i, j] * A[i, j] + nan\noutput T, Y"
FORMS: dict[str, Callable[[n.Graph], n.Graph]] = {
    "text": lambda graph: parse(show(graph)),
    "MLIR": lambda graph: from_mlir(to_mlir(graph)),
    "protobuf": lambda graph: from_proto(to_proto(graph)),
    "protobuf text": lambda graph: from_text(to_text(graph)),
}


def compiled() -> ff.compiler.Compiled:
    data = np.zeros((6, 5), np.float32)
    data[1, 2], data[4, 4], data[0, 0] = 3, 5, 0.5
    return ff.compile(parse_program(PROGRAM), tensors={"A": data}, schedule=ff.Schedule.fuse("full"))


def negative(graph: n.Graph) -> n.Graph:
    """The same graph with declarations made anew, each of a NaN with the other sign."""
    return replace(graph, tensors=tuple(replace(t, fill=float("-nan")) if t.fill != t.fill else t for t in graph.tensors))


def test_a_program_compiles_to_equal_graphs():
    first, second = compiled(), compiled()
    graphs = [region.graph for region in first.regions]
    assert any(np.isnan(t.fill) for graph in graphs for t in graph.tensors)
    assert graphs == [region.graph for region in second.regions] and first.program == second.program
    check = first.run().check
    assert check is not None and check.passed


@pytest.mark.parametrize("form", FORMS)
def test_written_forms_keep_it(form: str):
    for region in compiled().regions:
        assert FORMS[form](region.graph) == region.graph == negative(region.graph)
        assert hash(FORMS[form](region.graph)) == hash(region.graph)


def test_both_signs_are_written_alike():
    for region in compiled().regions:
        assert to_proto(negative(region.graph)) == to_proto(region.graph)
        assert to_text(negative(region.graph)) == to_text(region.graph)
    for signed in (float("nan"), float("-nan")):
        assert n.Operand(signed) == n.Operand(float("nan")) and np.copysign(1, n.Operand(signed).value) == 1
