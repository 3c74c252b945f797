"""Writers in lanes that a schedule asks for in vain: what is written once, and why, and that the note is right."""

from __future__ import annotations

import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.samml.lane_writers import WriteLaneValues

PRODUCT = "tensor A[8, 8] {a}\ntensor B[8, 4] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"


@pytest.mark.parametrize(
    ("a", "y", "order", "lanes", "why"),
    [
        ("dense", "", "i,j,k", {"i": 2}, None),
        ("dense", "", "i,k,j", {"i": 2}, "kept in a workspace"),
        ("csr", "", "i,j,k", {"i": 2}, None),
        ("dense", "", "i,j,k", {"k": 2}, "may lack coordinates"),
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
