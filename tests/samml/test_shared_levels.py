"""Tensors with the levels of another one in a graph: written forms, and which graphs provably write a value for each place."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.errors import GraphError
from fuseflow.samml.protobuf import compatibility, from_proto, from_text, to_proto, to_text
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Format, pack
from fuseflow.tensors.blocks import with_structure_of

GRAPH = """graph scaled
tensor V[3, 4]  csr like W
tensor W[3, 4]  csr
tensor Y[3, 4]  csr f64 like W
output Y

root = root()
W_i = scan(root) W.0 sequential
W_j = scan(W_i.ref) W.1 sequential
V_val = load(W_j.ref) V sequential
mul = alu(V_val) mul 2,N->0
write_Y_val = write(mul) Y.vals
"""

SCAN = "odd_i = scan(root) A.0\nodd_j = scan(odd_i.ref) A.1\nV_val ="
"""What scans another tensor, before the values are read."""


def test_every_written_form_reads_back() -> None:
    graph = parse(GRAPH)
    verify(graph)
    assert show(graph) == GRAPH
    assert from_proto(to_proto(graph)) == graph
    assert from_text(to_text(graph)) == graph
    assert any("it has the levels of `W`" in line for line in map(str, compatibility(graph)))
    mlir = pytest.importorskip("fuseflow.samml.mlir")
    assert mlir.from_mlir(mlir.to_mlir(graph)) == graph


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_what_is_written_shares_the_levels(engine: str) -> None:
    root = pack(np.array([[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]], dtype=np.float32), Format.parse("csr", 2))
    held = with_structure_of(root, pack(np.zeros((3, 4), dtype=np.float32), Format.dense(2)))
    run = simulate(parse(GRAPH), {"W": root, "V": held}, load_machine("rda"), engine=engine)
    assert run.outputs["Y"].levels is root.levels
    assert run.outputs["Y"].values.tolist() == [0, 0, 0]
    assert {(t.tensor, t.kind, t.direction) for t in run.traffic} == {
        ("V", "val", "read"), ("W", "pos", "read"), ("W", "crd", "read"), ("Y", "val", "write"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Y[3, 4]  csr f64 like W", "Y[3, 4]  csr f64 like Z", "tensor `Y` cannot have the 2 outermost levels of `Z`"),
        ("Y[3, 4]  csr f64 like W", "Y[3, 4]  dcsr f64 like W", "tensor `Y` has other levels than `W`"),
        (
            "Y[3, 4]  csr f64 like W",
            "Y[3, 4]  csc f64 like W",
            "tensor `Y` is like `W`, and has another shape or format|has other levels",
        ),
        (
            "write_Y_val = write(mul) Y.vals",
            "write_Y_i = write(W_i.crd) Y.0\nwrite_Y_val = write(mul) Y.vals",
            "its values alone",
        ),
        (
            "mul = alu(V_val) mul 2,N->0",
            "some = join(W_j.crd, W_j.ref; odd_j.crd) intersect\nU_val = load(some.out0) V\nmul = alu(U_val) mul 2,N->0",
            "`write_Y_val` does not provably write a value for each place of `W`",
        ),
    ],
)
def test_what_may_miss_a_place_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        verify(parse(GRAPH.replace(old, new).replace("tensor W", "tensor A[3, 4]  csr\ntensor W").replace("V_val =", SCAN)))
