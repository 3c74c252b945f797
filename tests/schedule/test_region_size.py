"""Regions that `layerwise` and `full` grow are divided where they would have too many loops of reductions, between the fewest tensors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fuseflow as ff
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.schedule import Schedule, form_regions
from fuseflow.schedule.fusion_reasons import why_cut, why_fused
from fuseflow.schedule.region_size import MOST_REDUCTION_LOOPS, RegionDivider


def chain(products: int, skip: int = 0) -> Program:
    """Products one after the other. Every one is followed by `skip` Einsums that read it and the one before."""
    lines = ["tensor X0[4, 4] dense", "tensor W[4, 4] dense"]
    for n in range(products):
        lines.append(f"T{n}[i, j] = sum(k) X{n}[i, k] * W[k, j]")
        last = f"T{n}"
        for m in range(skip):
            lines.append(f"S{n}x{m}[i, j] = {last}[i, j] + X{n}[i, j]")
            last = f"S{n}x{m}"
        lines.append(f"X{n + 1}[i, j] = relu({last}[i, j])")
    return parse("\n".join([*lines, f"output X{products}"]))


def pieces(program: Program) -> list[list[str]]:
    return RegionDivider(program).pieces([e.name for e in program.einsums])


def test_a_region_of_few_loops_is_whole() -> None:
    program = chain(MOST_REDUCTION_LOOPS)
    assert len(pieces(program)) == 1
    assert [r.name for r in form_regions(program, Schedule.fuse("full"))] == ["full"]


def test_a_region_ends_where_the_fewest_tensors_go_on() -> None:
    """Between a product and its `relu`, two tensors go on; behind the `relu`, one does."""
    program = chain(MOST_REDUCTION_LOOPS + 1, skip=2)
    first, second = pieces(program)
    assert first[-1].startswith("X") and second[0].startswith("T")
    assert [r.name for r in form_regions(program, Schedule.fuse("full"))] == ["full", "full-2"]


@given(st.integers(1, 120), st.integers(0, 3))
def test_pieces_are_small_and_in_program_order(products: int, skip: int) -> None:
    program = chain(products, skip)
    parts = pieces(program)
    assert [name for part in parts for name in part] == [e.name for e in program.einsums]
    assert all(sum(name.startswith("T") for name in part) <= MOST_REDUCTION_LOOPS for part in parts)
    assert len(parts) <= 1 + 2 * products // MOST_REDUCTION_LOOPS


@given(count=st.integers(2, 12), skip=st.integers(0, 2))
def test_no_half_is_empty(count: int, skip: int) -> None:
    """Two Einsums were once divided into both and none, and were to be divided again without an end."""
    program = chain(6, skip)
    einsums = [e.name for e in program.einsums][:count]
    first, second = RegionDivider(program).halves(einsums)
    assert first and second and [*first, *second] == einsums


def test_an_einsum_with_more_loops_is_a_region() -> None:
    names = [f"i{n}" for n in range(MOST_REDUCTION_LOOPS + 1)]
    shape = ", ".join("1" for _ in names)
    program = parse(f"tensor X[{shape}] dense\nT[] = sum({', '.join(names)}) X[{', '.join(names)}]\nY[] = relu(T[])\noutput Y")
    assert pieces(program) == [["T"], ["Y"]]


def test_a_region_of_the_user_is_not_divided() -> None:
    program = chain(MOST_REDUCTION_LOOPS + 1)
    whole = Schedule.region("whole", *(e.name for e in program.einsums)).fuse("whole")
    assert len(form_regions(program, whole)) == 1


def test_the_reason_for_a_border_is_said() -> None:
    program, schedule = chain(MOST_REDUCTION_LOOPS + 1), Schedule.fuse("full")
    regions = form_regions(program, schedule)
    last = regions[0].einsums[-1]
    reader = next(e.name for e in program.einsums if last in e.operands)
    reason = "one region would have too many loops of reductions, or repeat too much, so it is divided"
    assert why_cut(program, schedule, regions, last, reader) == reason
    assert why_fused(program, schedule, "T0", "X1") == "`full` fuses what no reshape parts"


@pytest.mark.parametrize("layer", [torch.nn.GRU, torch.nn.LSTM])
def test_a_recurrent_layer_of_many_steps_takes_fewer_cycles_fused_than_unfused(layer: type[torch.nn.RNNBase]) -> None:
    torch.manual_seed(0)
    module, inputs = layer(4, 4), (torch.randn(4, 2, 4),)
    fused, alone = (ff.compile(module, inputs, schedule=Schedule.fuse(f)).run() for f in ("full", "none"))
    assert fused.check is not None and fused.check.passed
    assert fused.cycles < alone.cycles / 2
