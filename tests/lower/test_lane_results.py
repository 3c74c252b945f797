"""Writers in lanes that a schedule asks for in vain: what is written once, and why, and that the note is right."""

from __future__ import annotations

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.samml.writers import WriteLaneValues

PRODUCT = "tensor A[8, 8] {a}\ntensor B[8, 4] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"


@pytest.mark.parametrize(
    ("a", "y", "order", "lanes", "why"),
    [
        ("dense", "", "i,j,k", {"i": 2}, None),
        ("dense", "", "i,k,j", {"i": 2}, None),
        ("csr", "", "i,k,j", {"i": 2}, None),
        ("dcsr", "dense", "i,k,j", {"i": 2}, "no lane has whole rows"),
        ("csr", "", "i,j,k", {"i": 2}, None),
        ("dense", "", "i,j,k", {"k": 2}, "no lane has whole rows"),
        ("dense", "csr", "i,j,k", {"i": 2}, "it is stored csr"),
        ("dense", "", "i,j,k", {}, "no loop is dealt"),
    ],
)
def test_what_is_written_once_is_said(a: str, y: str, order: str, lanes: dict[str, int], why: str | None):
    schedule = ff.Schedule.fuse("full").lower(writers="lanes").order("Y", order)
    schedule = schedule.format("Y", y) if y else schedule
    for index, count in lanes.items():
        schedule = schedule.par(**{index: count})
    compiled = ff.compile(parse(PRODUCT.format(a=a)), schedule=schedule)
    in_lanes = any(isinstance(node, WriteLaneValues) for node in compiled.regions[-1].graph.nodes)
    assert in_lanes == (why is None)
    assert [why in notice for notice in compiled.notices if why] == ([True] if why else [])


SPGEMM = "tensor A[8, 8] csr\ntensor B[8, 4] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
CHAIN = """tensor A[8, 8] csr
tensor X[8, 8] csr
tensor W[8, 4]
tensor b[4]
T[i, j] = sum(k) X[i, k] * W[k, j]
Y[i, j] = sum(k) A[i, k] * T[k, j]
Z[i, j] = relu(Y[i, j] + b[j])
output Z"""


@pytest.mark.parametrize(
    ("text", "y", "order", "machine", "settings", "written"),
    [
        (PRODUCT.format(a="csr"), "", "i,k,j", "ideal", {}, 2),  # all of a row, or none of it
        (PRODUCT.format(a="csr"), "", "i,k,j", "rda", {}, 2),
        (PRODUCT.format(a="csr"), "", "i,j,k", "ideal", {}, 2),
        (PRODUCT.format(a="csr"), "", "i,k,j", "ideal", {"writers": "once"}, 0),
        (PRODUCT.format(a="csr"), "", "i,k,j", "ideal", {"primitives": "public"}, 0),
        (PRODUCT.format(a="csr"), "", "i,k,j", "comal", {}, 0),
        (PRODUCT.format(a="csr"), "", "i,k,j", "comal", {"primitives": "own"}, 0),
        (PRODUCT.format(a="csr"), "csr", "i,k,j", "ideal", {}, 0),  # nobody knows where a row begins
        (SPGEMM, "dense", "i,k,j", "ideal", {}, 0),  # rows of which most is missing
        (SPGEMM, "dense", "i,k,j", "ideal", {"writers": "lanes"}, 2),
        (CHAIN, "", "", "ideal", {}, 2),
    ],
)
def test_the_default_writes_in_lanes_where_whole_rows_are_missing_at_most(
    text: str, y: str, order: str, machine: str, settings: dict[str, str], written: int
):
    schedule = ff.Schedule.fuse("full").lower(**settings).par(i=2)
    schedule = schedule.order("Y", order) if order else schedule
    schedule = schedule.format("Y", y) if y else schedule
    tensors = sparse_operands(text)
    compiled = ff.compile(parse(text), schedule=schedule, machine=machine, tensors=tensors)
    (region,) = compiled.regions
    assert sum(isinstance(node, WriteLaneValues) for node in region.graph.nodes) == written
    compiled.run()  # which compares with the interpreter
    assert not compiled.notices


def sparse_operands(text: str) -> dict[str, np.ndarray]:
    """Random operands, of which rows 2 and 5 of each matrix that is stored compressed have no entries."""
    rng, operands = np.random.default_rng(0), {}
    for tensor in parse(text).tensors:
        values = rng.standard_normal(tensor.shape).astype(np.float32)
        if tensor.format is not None and not tensor.format.all_dense:
            values *= rng.random(tensor.shape) < 0.4
            values[[2, 5]] = 0
        operands[tensor.name] = values
    return operands
