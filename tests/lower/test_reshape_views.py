"""Reshapes from end to end: what vanishes, what is seen in other dimensions, what is copied, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import ATTENTION

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FusionError, ScheduleError


def compiled(text: str, schedule: ff.Schedule | None = None, **tensors) -> ff.compiler.Compiled:
    program = parse(text)
    rng = np.random.default_rng(0)
    for t in program.inputs:
        some = rng.random(t.shape) < 0.5 if t.format is not None and not t.format.all_dense else 1.0
        tensors.setdefault(t.name, (rng.standard_normal(t.shape) * some).astype(np.float32))
    return ff.compile(program, tensors=tensors, schedule=schedule, machine="ideal")


def ran(program: ff.compiler.Compiled) -> ff.compiler.Result:
    result = program.run()
    assert result.check is not None and result.check.passed
    return result


@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
def test_attention_at_every_granularity(fuse) -> None:
    program = compiled(ATTENTION, ff.Schedule.fuse(fuse))
    assert [r.name for r in program.regions] == (list("PSOY") if fuse == "none" else ["full", "full-2", "full-3"])
    assert [(s.source, s.name) for r in program.regions for s in r.views_before] == [("W", "W.split"), ("V", "V.split")]
    ran(program)


def test_a_named_region_spans_the_head_split() -> None:
    program = compiled(ATTENTION, ff.Schedule.region("all", "P", "Q", "S", "O", "C", "Y").fuse("all"))
    assert [r.einsums for r in program.regions] == [("P", "S", "O", "Y")]
    ran(program)


SPLIT = "tensor X[4, 6] {0}\nP[i, j] = X[i, j] * 2\nQ[h, i, d] = P[i, h*3 + d]\nA[h, i, d] = Q[h, i, d] + 1\noutput A"


def test_a_dense_result_of_sparse_data_is_seen_in_parts() -> None:
    program = compiled(SPLIT.format("csr"), ff.Schedule.fuse("full").format("P", "dense"))
    assert [(r.name, [s.name for s in r.views_before]) for r in program.regions] == [("full", []), ("full-2", ["P.split"])]
    ran(program)


def test_a_compressed_result_does_not_come_apart() -> None:
    with pytest.raises(FusionError, match=r"`P` is stored csr: it cannot be reshaped as in"):
        compiled(SPLIT.format("csr"))


@pytest.mark.parametrize("cut", ["none", "full"])
def test_a_compressed_result_of_a_training_step_is_dense_where_it_comes_apart(cut) -> None:
    carried = "\ntensor a[4]\nnext.a[i] = a[i] * 0.5\noutput next.a"
    program = compiled(SPLIT.format("csr") + carried, ff.Schedule.fuse(cut))
    assert program.program.declared["P"].format.all_dense
    ran(program)


def test_an_output_is_seen_whole() -> None:
    program = compiled("tensor X[4, 2, 3]\nP[i, h, d] = X[i, h, d] * 2\nY[i, h*3 + d] = P[i, h, d]\noutput Y")
    assert [(s.source, s.name) for s in program.regions[-1].views_after] == [("Y.split", "Y")] and len(program.regions) == 1
    assert ran(program).outputs["Y"].shape == (4, 6)


MERGE = "tensor X[2, 4, 3] {0}\nP[h, i, d] = X[h, i, d] * 2\nY[i, h*3 + d] = P[h, i, d] + 1\noutput Y"


def test_a_compressed_output_does_not_come_together_unless_it_is_stored_dense() -> None:
    sparse = "(compressed, dense, dense)"
    with pytest.raises(FusionError, match=r"`Y` is stored .*: it cannot be reshaped as in") as error:
        compiled(MERGE.format(sparse))
    assert "`--format Y=dense`" in error.value.hint
    ran(compiled(MERGE.format(sparse), ff.Schedule().format("Y", "dense")))


@pytest.mark.parametrize("order", ["i,h,d", "h,i,d", "d,h,i"])
def test_a_merge_that_is_not_stored_so_is_copied(order) -> None:
    program = compiled(MERGE.format(""), ff.Schedule.fuse("none").order("Y", order).lower(copies=False))
    copies = [r.name for r in program.regions if not r.einsums]
    assert copies == ([] if order == "i,h,d" else ["Y.split.dense_0_1_2"])
    ran(program)


def test_a_declared_order_of_an_output_is_kept() -> None:
    program = compiled(MERGE.format(""), ff.Schedule().format("Y", "(dense, dense) order (1, 0)"))
    assert ran(program).tensors["Y"].format.order == (1, 0)


def test_an_order_of_what_vanished_is_refused() -> None:
    with pytest.raises(ScheduleError, match="order of `Q`: it has no loops, it is `P` seen in other dimensions"):
        compiled(ATTENTION, ff.Schedule.order("Q", "i,h,d"))


@st.composite
def reshaped(draw) -> str:
    """A vector that comes apart and together again and again, in other orders, times what has the same shape."""
    lines, shapes = ["tensor X[24]", "tensor Y[24]"], {"X": (24,), "Y": (24,)}
    for n in range(draw(st.integers(1, 5))):
        source = draw(st.sampled_from(list(shapes)))
        left, right, shape = list("ijk"[: len(shapes[source])]), list("ijk"[: len(shapes[source])]), list(shapes[source])
        cuts = [(d, k) for d, size in enumerate(shape) for k in (2, 3, 4, 6) if size > k and size % k == 0]
        if len(shape) == 1 or (len(shape) < 3 and cuts and draw(st.booleans())):
            at, inner = draw(st.sampled_from(cuts))
            left[at : at + 1], right[at] = [left[at], "d"], f"{left[at]}*{inner} + d"
            shape[at : at + 1] = [shape[at] // inner, inner]
            swapped = draw(st.permutations(range(len(shape))))
            left, shape = [left[p] for p in swapped], [shape[p] for p in swapped]
        else:
            at = draw(st.integers(0, len(shape) - 2))
            left[at : at + 2] = [f"{left[at]}*{shape[at + 1]} + {left[at + 1]}"]
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        others = [name for name, other in shapes.items() if other == tuple(shape) and "*" not in "".join(left)]
        factor = f" * {draw(st.sampled_from(others))}[{', '.join(left)}]" if others else ""
        lines.append(f"T{n}[{', '.join(left)}] = {source}[{', '.join(right)}]{factor} * 2")
        shapes[f"T{n}"] = tuple(shape)
    outputs = draw(st.lists(st.sampled_from([n for n in shapes if n[0] == "T"]), unique=True, min_size=1))
    return "\n".join([*lines, f"output {', '.join(outputs)}"])


@settings(max_examples=40, deadline=None)
@given(reshaped(), st.sampled_from(["none", "full"]))
def test_random_reshapes(text, fuse) -> None:
    ran(compiled(text, ff.Schedule.fuse(fuse)))


@pytest.mark.parametrize("schedule", [ff.Schedule.fuse("full"), ff.Schedule.fuse("layerwise"), ff.Schedule.fuse("none")])
def test_a_declared_result_that_is_merged_and_split_again_ends_a_region(schedule: ff.Schedule) -> None:
    text = """
    tensor A[4, 4, 2] (compressed, dense, dense) order (0, 2, 1)
    tensor T[8] dense
    T[j*2 + r] = sum(k) A[k, j, r]
    Y[p] = sum(i) relu(T[p*4 + i])
    output Y
    """
    compiled = ff.compile(parse(text), schedule=schedule, tensors={"A": np.ones((4, 4, 2))})
    assert [region.einsums for region in compiled.regions] == [("T.split",), ("Y",)]
    assert compiled.run().check.passed


def test_a_region_of_the_user_with_a_declared_reshape_inside_is_refused() -> None:
    text = "tensor A[4, 2]\ntensor T[8] dense\nT[i*2 + j] = relu(A[i, j])\nY[p] = sum(i) T[p*4 + i]\noutput Y"
    with pytest.raises(ScheduleError, match="`T`, which reshapes data that cannot be in these dimensions everywhere"):
        ff.compile(parse(text), schedule=ff.Schedule.region("both", "T", "Y").fuse("both"), tensors={"A": np.ones((4, 2))})


def test_zeros_of_a_merged_output_are_not_dropped_for_the_right_reason() -> None:
    text = "tensor A[2, 3, 2] csf\nY[p, i*2 + q] = relu(A[p, i, q])\noutput Y"
    with pytest.raises(ScheduleError, match="zeros of `Y` cannot be dropped: it is written in the parts of its dimensions"):
        compiled(text, ff.Schedule.lower(drop_zeros=["Y"]))
