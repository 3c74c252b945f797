"""The statistics of tensors, as memory holds them: in the format and the blocks that a schedule gives them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuseflow.costs import TensorStatistics, collect_statistics, measure_statistics
from fuseflow.costs.statistics import stored_statistics
from fuseflow.einsum.nodes import TensorType
from fuseflow.einsum.parse import parse
from fuseflow.errors import OverfullError, TensorError
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import lower
from fuseflow.lower.state import initial_state
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format, Tensor, pack, repack
from fuseflow.tensors.blocks import to_blocks

LEVELS = ("dense", "compressed", "bitmap", "nm(1:2)", "nm(2:2)", "nm(2:3)", "nm(3:3)")


@st.composite
def formats(draw, rank: int) -> Format:
    """Any format of tensors of this rank: levels in any order, lists of coordinates among them, with all entries or those that differ."""
    names = [draw(st.sampled_from(LEVELS)) for _ in range(rank)]
    listed = draw(st.integers(0, rank))
    if listed > 1:
        first = draw(st.integers(0, rank - listed))
        names[first : first + listed] = ["compressed(nonunique)", *["singleton(nonunique)"] * (listed - 2), "singleton"]
    format = Format.of(*names, order=tuple(draw(st.permutations(range(rank)))))
    return format if format.all_dense else Format(format.levels, format.order, draw(st.booleans()))


@st.composite
def blocks(draw, rank: int) -> tuple[int, ...]:
    """The blocks of a tensor of this rank, of one or two dimensions or of none."""
    sizes = [1] * rank
    for d in draw(st.lists(st.integers(0, rank - 1), max_size=2)) if rank else ():
        sizes[d] = draw(st.integers(2, 3))
    return tuple(sizes) if max(sizes, default=1) > 1 else ()


@st.composite
def stored_tensors(draw) -> tuple[Tensor, TensorType]:
    """A tensor in any format, zeros among its entries, and a type of the same shape in any other."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    fill = draw(st.sampled_from([0.0, 1.0, -np.inf]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    array = np.where(rng.random(shape) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0])), rng.integers(0, 3, shape), fill)
    try:
        tensor = pack(array, draw(formats(len(shape))), fill)
    except TensorError:
        assume(False)
    return tensor, TensorType("A", shape, draw(formats(len(shape))), block=draw(blocks(len(shape))))


@given(stored_tensors())
def test_statistics_are_those_of_the_tensor_that_was_packed_so(case):
    tensor, declared = case
    assert declared.format is not None
    try:
        packed = to_blocks(repack(tensor, declared.format), declared.block)
    except TensorError as error:
        with pytest.raises(type(error)):
            stored_statistics(tensor, declared)
        return
    assert stored_statistics(tensor, declared) == measure_statistics(packed)


def test_walking_the_fibers_finds_as_many_coordinates():
    """An oracle that reads no count of a level: the fibers one by one."""
    array = np.random.default_rng(1).random((9, 7)) < 0.3
    for name in ("csr", "csc", "dcsr", "dcsc", "coo", "(bitmap, bitmap)", "dense"):
        stored = pack(array, Format.parse(name, 2))
        refs, fanouts = [0], []
        for level in stored.levels:
            below = [ref for fiber in refs for ref in level.fiber(fiber)[1]]
            fanouts.append(len(below) / len(refs))
            refs = below
        declared = TensorType("A", (9, 7), Format.parse(name, 2))
        for source in ("csf", "csc", "dense"):
            assert stored_statistics(pack(array, Format.parse(source, 2)), declared).fanouts == tuple(fanouts)


SAE = """
tensor X[2, 60]  csf
tensor We[60, 6] csf
tensor Wd[6, 60] csf
H[b, h] = sum(d) X[b, d] * We[d, h]
O[b, e] = sum(h) H[b, h] * Wd[h, e]
output O
"""


def sae() -> dict[str, Tensor]:
    rng = np.random.default_rng(0)
    shapes = {"X": (2, 60), "We": (60, 6), "Wd": (6, 60)}
    arrays = {name: rng.random(shape) * (rng.random(shape) < 0.3) for name, shape in shapes.items()}
    return {name: pack(array, Format.parse("csf", 2)) for name, array in arrays.items()}


@pytest.mark.parametrize(("format", "sizes", "fanouts"), [
    ("csr", (6, 60), (6.0, 113 / 6)),
    ("csc", (60, 6), (60.0, 113 / 60)),
    ("dense", (6, 60), (6.0, 60.0)),
])  # fmt: skip
def test_a_lowering_ranks_by_the_format_of_the_schedule(format, sizes, fanouts):
    tensors = sae()
    assert tensors["Wd"].stored == 113
    partitioned = partition_program(parse(SAE), Schedule.fuse("full").format("Wd", format))
    assert initial_state(partitioned, tensors).statistics["Wd"] == TensorStatistics(sizes, fanouts)


@pytest.mark.parametrize("format", ["csc", "dense", "csr", "dcsc"])
def test_a_schedule_compiles_alike_from_whatever_format_its_inputs_come_in(format):
    program, tensors, schedule = parse(SAE), sae(), Schedule.fuse("full").format("Wd", format)
    packed = {**tensors, "Wd": repack(tensors["Wd"], Format.parse(format, 2))}
    graphs = [[region.graph for region in lower(program, schedule, stored)[1]] for stored in (tensors, packed)]
    assert graphs[0] == graphs[1]


def test_blocks_are_counted_and_not_packed(monkeypatch):
    tensor = pack(np.eye(64), Format.parse("csf", 2))
    declared = TensorType("A", (64, 64), Format.parse("csc", 2), block=(4, 4))
    expected = measure_statistics(to_blocks(repack(tensor, Format.parse("csc", 2)), (4, 4)))
    monkeypatch.setattr("fuseflow.tensors.blocks.to_blocks", lambda *_: pytest.fail("a tensor was packed"))
    assert stored_statistics(tensor, declared) == expected == TensorStatistics((16, 16), (16.0, 1.0))


def test_data_that_has_no_room_in_its_format_is_named():
    declared = TensorType("A", (2, 4), Format.of("dense", "nm(1:4)"))
    with pytest.raises(OverfullError, match=r"tensor `A`: .*room for 1"):
        collect_statistics({"A": declared}, {"A": pack(np.ones((2, 4)), Format.dense(2))})
