"""Passes: dead nodes go, fiber FIFOs are found."""

from __future__ import annotations

from dataclasses import replace

import programs
import pytest

from fuseflow.samml.nodes import Edge, Load, Port, Scan, TensorDecl
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.tensors import Format
from fuseflow.transform import fifos, prune


def test_prune_removes_what_no_write_reaches():
    graph = programs.graph("spmm", "i,k,j")
    dead = (Scan("Z_i", (Port("root"),), "Z", 0), Load("Z_val", (Port("Z_i", 1),), "Z"))
    tensors = (*graph.tensors, TensorDecl("Z", (3,), Format.dense(1)))
    grown = replace(graph, nodes=(*graph.nodes, *dead), tensors=tensors, depths=((Edge("Z_val", 0), 4),))
    verify(grown)
    assert prune(grown) == graph


def test_prune_leaves_a_live_graph_alone():
    graph = programs.graph("layer", "i,k,l,j")
    assert prune(graph) == graph


SYMMETRIC = """
graph symmetric
tensor A[4, 4]  dcsr
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
A_v = load(A_k.ref) A
turned = permute(A_i.crd, A_k.crd, A_v) order=1,0
i = join(A_i.crd; turned.crd0) union
"""


def test_a_tensor_waits_for_its_own_copy():
    found = {f"{e.node}.{e.input}" for e in fifos(parse(SYMMETRIC)).fiber_fifos}
    assert found == {"i.0"}


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ("spmm", "i,k,j", set()),
        ("sddmm", "i,j,k", set()),  # M's value waits for the inner product: one element, not a fiber
        ("masked_softmax", "i,j", {"rep_j'2.1", "sub.0", "rep_j'3.1", "div.0"}),
    ],
)
def test_fiber_fifos(name, order, expected):
    found = {f"{e.node}.{e.input}" for e in fifos(programs.graph(name, order)).fiber_fifos}
    assert found == expected
