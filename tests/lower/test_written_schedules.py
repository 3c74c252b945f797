"""Schedules that a Linalg module has: its functions are regions, and the loops of its operations run in their orders."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import ordered_linalg as linalg
import pytest

import fuseflow
from fuseflow.errors import FusionError
from fuseflow.frontend import read_mlir
from fuseflow.fusion.region_program import order_edges
from fuseflow.lower.program import lower
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled
from fuseflow.samml import text as samml_text
from fuseflow.schedule import Schedule

S = linalg.SQUARE
AB = (("A", S), ("B", S))

LAYERWISE = Schedule.fuse("layerwise")
"""It takes the regions of a text, and grows regions where there are none."""


def compiled(tmp_path: Path, text: str, schedule: Schedule | None = None) -> Compiled:
    (tmp_path / "m.mlir").write_text(text)
    return fuseflow.compile(tmp_path / "m.mlir", tensors=linalg.operands(), machine="ideal", schedule=schedule or LAYERWISE)


def lowered(text: str, schedule: Schedule | None = None) -> tuple[CompiledRegion, ...]:
    return lower(read_mlir(text, "m.mlir"), schedule or LAYERWISE, {})[1]


def reasons(region: CompiledRegion) -> set[str]:
    return {why for _, _, why in order_edges(region.fused)}


@pytest.mark.parametrize("order", ["ikj", "ijk"])
def test_handed_modules_of_one_function(order: str, tmp_path: Path) -> None:
    """`one.mlir` and `one_ijk.mlir`."""
    program = compiled(tmp_path, linalg.two_products(order), Schedule.fuse("none"))
    assert ["".join(region.fused.order) for region in program.regions] == [order, order]
    place = f"asked for in {tmp_path / 'm.mlir'}"
    assert [reasons(region) >= {f"{place}:{line}"} for region, line in zip(program.regions, (6, 12), strict=True)] == [True, True]
    (region,) = compiled(tmp_path, linalg.two_products(order)).regions
    for names in region.fused.local_names.values():
        assert linalg.runs_in(region.fused.order, names, order)


def test_the_handed_module_of_two_calls(tmp_path: Path) -> None:
    """`fuse.mlir`: a region for each call, and the second one repeats the first."""
    program = compiled(tmp_path, linalg.two_calls())
    assert [(r.name, r.einsums) for r in program.regions] == [
        ("fuse1", ("matmul", "matmul_2")),
        ("fuse1-2", ("matmul_3", "matmul_4")),
    ]
    schedule = Schedule.fuse("front", "back").region("front", "matmul", "matmul_2").region("back", "matmul_3", "matmul_4")
    other = compiled(tmp_path, linalg.two_calls(), schedule)
    for ours, named in zip(program.regions, other.regions, strict=True):
        assert samml_text.show(ours.graph).replace(ours.name, "R") == samml_text.show(named.graph).replace(named.name, "R")
    result = program.run()
    a, x, w = linalg.operands().values()
    np.testing.assert_allclose(np.asarray(result.outputs["matmul_4"]), a @ (a @ x @ w) @ w, rtol=1e-5)
    assert result.check is not None and result.check.passed
    assert [(region.name, [again.name for again in region.repeats]) for region in result.regions] == [("fuse1", ["fuse1-2"])]


def test_a_region_that_repeats_another_has_its_own_places() -> None:
    text = linalg.CSR + linalg.function(
        "@main",
        AB,
        linalg.product("0", "A", "B", "jik") + linalg.product("1", "0", "B", "jik") + linalg.product("2", "1", "B", "jik"),
        "2",
    )
    regions = lowered(text, Schedule.fuse("none"))
    assert [sorted(reasons(region)) for region in regions] == [[f"asked for in m.mlir:{line}"] for line in (6, 12, 18)]


@pytest.mark.parametrize("order", [*map("".join, permutations("ikj"))])
@pytest.mark.parametrize("text", [linalg.two_products, linalg.two_calls])
def test_every_order_is_honoured_through_fusion(order: str, text: Callable[[str], str], tmp_path: Path) -> None:
    """A tensor that is stored otherwise is read from a permuted copy, and a region that nobody named may be divided. A function is not."""
    refusals = {"kij": "contradict each other", "jik": "contradict each other", "kji": "inside loop j, which it lacks"}
    if text is linalg.two_calls and order in refusals:
        with pytest.raises(FusionError, match=refusals[order]) as caught:
            compiled(tmp_path, text(order))
        assert caught.value.span is not None and caught.value.span.line in (6, 12)
        assert all(f"m.mlir:{line}" in str(caught.value) for line in (6, 12))
        return
    program = compiled(tmp_path, text(order))
    result = program.run()
    assert result.check is not None and result.check.passed
    for region in program.regions:
        for name in region.einsums:
            assert linalg.runs_in(region.fused.order, region.fused.local_names[name], order)


def test_every_view_of_an_operation_has_its_order() -> None:
    """The square of a product reads it at two tuples of indices, and computes it in two places."""
    body = linalg.product("0", "A", "B", "ikj") + linalg.product("1", "0", "0", "ikj")
    (region,) = lowered(linalg.CSR + linalg.function("@main", AB, body, "1"))
    assert [order.indices for order in region.fused.asked if order.einsum == "matmul"] == [("i", "l", "k"), ("k", "m", "j")]
    assert linalg.runs_in(region.fused.order, {}, "ilk") and linalg.runs_in(region.fused.order, {}, "kmj")


CONTRADICTIONS = [
    (linalg.pointwise("0", "A", "B", "ij") + linalg.pointwise("1", "0", "B", "ji", "mulf"), (6, 11)),
    (linalg.product("0", "A", "B", "ikj") + linalg.pointwise("1", "0", "B", "ji", "mulf"), (6, 12)),
    (linalg.product("0", "A", "B", "ijk") + linalg.product("1", "A", "0", "ijk"), (6, 12)),
    (linalg.product("0", "A", "B", "kij") + linalg.product("1", "0", "0", "jki"), (6, 12)),
]


@pytest.mark.parametrize(("body", "lines"), CONTRADICTIONS)
@pytest.mark.parametrize("copies", [True, False])
def test_orders_that_contradict_each_other_in_a_function(body: str, lines: tuple[int, int], copies: bool) -> None:
    main = linalg.function("@main", AB, linalg.call("0", "front", AB), "0")
    text = linalg.CSR + linalg.function("private @front", AB, body, "1") + main
    with pytest.raises(FusionError) as caught:
        lowered(text, LAYERWISE.lower(copies=copies))
    error = caught.value
    assert all(f"m.mlir:{line}" in error.message for line in lines) and "contradict each other" in error.message
    assert error.span is not None and error.span.line in lines
    assert any("asked for in m.mlir" in note for note in error.notes)


@pytest.mark.parametrize(("body", "lines"), CONTRADICTIONS)
def test_orders_that_contradict_each_other_divide_a_region_that_nobody_named(
    body: str, lines: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "m.mlir").write_text(linalg.CSR + linalg.function("@main", AB, body, "1"))
    arrays = {f"arg{n}": np.random.default_rng(n).standard_normal((8, 8)).astype(np.float32) for n in (0, 1)}
    program = fuseflow.compile(tmp_path / "m.mlir", tensors=arrays, machine="ideal", schedule=LAYERWISE)
    assert len(program.regions) == 2
    (notice,) = program.notices
    assert all(f"m.mlir:{line}" in notice for line in lines) and notice.endswith("so it is divided")
    result = program.run()
    assert result.check is not None and result.check.passed


@pytest.mark.parametrize(
    ("types", "order", "edges"),
    [
        ((linalg.tensor(8, 8, "#csr"), S), "kij", ("i before k", "k before i")),
        ((linalg.tensor(8, 8, "#csr"), linalg.tensor(8, 8, "#csr")), "ijk", ("j before k", "k before j")),
        ((linalg.tensor(8, 8, "#csr"), S), "jki", ("i before k", "k before i")),
    ],
)
def test_an_order_against_the_storage_is_refused_without_copies(
    types: tuple[str, str], order: str, edges: tuple[str, str]
) -> None:
    arguments = (("A", types[0]), ("B", types[1]))
    text = linalg.CSR + linalg.function("@main", arguments, linalg.product("0", "A", "B", order, (*types, S)), "0")
    assert linalg.runs_in(lowered(text)[-1].fused.order, {}, order)
    with pytest.raises(FusionError) as caught:
        lowered(text, LAYERWISE.lower(copies=False))
    assert all(edge in caught.value.message for edge in edges)
    assert caught.value.span is not None and caught.value.span.line == 6
    assert "asked for in m.mlir:6" in " ".join(caught.value.notes) and "is stored" in " ".join(caught.value.notes)


def test_the_schedule_of_the_user_wins_and_says_so(tmp_path: Path) -> None:
    file, text = tmp_path / "m.mlir", linalg.two_calls("ijk")
    assert compiled(tmp_path, text).notices == ()
    full = compiled(tmp_path, text, Schedule.fuse("full"))
    assert full.notices[0] == f"`fuse: full` says which regions there are, and not the functions of {file}"
    named = compiled(tmp_path, text, Schedule.fuse("fuse1").order("matmul_4", "j,k,i"))
    assert [(r.name, len(r.einsums)) for r in named.regions if r.einsums] == [("fuse1", 2), ("matmul_3", 1), ("matmul_4", 1)]
    assert named.notices[1:] == (f"region `matmul_4` runs in the order of the schedule, and not in that of {file}:12",)
    ordered = compiled(tmp_path, text, LAYERWISE.order("fuse1", "i,l,k,j"))
    assert ordered.regions[0].fused.order == ("i", "l", "k", "j") and not ordered.regions[0].fused.asked
    assert ordered.notices == (f"region `fuse1` runs in the order of the schedule, and not in that of {file}:6, {file}:12",)
    same = compiled(tmp_path, text, LAYERWISE.order("fuse1", ordered_as(compiled(tmp_path, text), "fuse1")))
    assert same.notices == ()


def ordered_as(program: Compiled, name: str) -> tuple[str, ...]:
    return next(region.fused.order for region in program.regions if region.name == name)


def test_a_policy_of_the_user_wins_and_says_so(tmp_path: Path) -> None:
    file, text = tmp_path / "m.mlir", linalg.two_products("ijk")
    first = compiled(tmp_path, text, LAYERWISE.lower(order_policy="first"))
    assert first.notices == (f"`order: first` orders the loops, and not {file}",) and not first.regions[0].fused.asked
    choice = fuseflow.autoschedule(
        file, tensors=linalg.operands(), machine="ideal", schedule=LAYERWISE.lower(order_policy="auto"), top=0
    )
    assert choice.compiled.notices == (f"`order: auto` orders the loops, and not {file}",)
    assert ordered_as(choice.compiled, "full") == ("i", "l", "k", "j")


def test_what_is_left_open_is_chosen_around_the_orders_of_the_module(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(linalg.two_calls("ijk"))
    choice = fuseflow.autoschedule(tmp_path / "m.mlir", tensors=linalg.operands(), machine="ideal", top=0)
    for region in choice.compiled.regions:
        for name in region.einsums:
            assert linalg.runs_in(region.fused.order, region.fused.local_names[name], "ijk")


def test_a_function_is_not_divided() -> None:
    """Grown regions have 32 loops of reductions at most."""
    steps = 34
    body = "".join(linalg.product(str(n + 1), "A", str(n) if n else "B", "ikj") for n in range(steps))
    main = linalg.function("@main", AB, linalg.call("0", "front", AB), "0")
    program = read_mlir(linalg.CSR + linalg.function("private @front", AB, body, str(steps)) + main, "m.mlir")
    assert [(r.name, len(r.einsums)) for r in fuseflow.schedule.form_regions(program, LAYERWISE)] == [("front", steps)]


def test_an_operation_that_ends_a_region_is_refused_inside_of_a_function() -> None:
    T, R = linalg.tensor(4, 6), linalg.tensor(6, 4)
    body = (
        f"  %0 = linalg.exp ins(%x : {T}) outs(%f : {T}) -> {T}\n"
        f"  %1 = tensor.collapse_shape %0 [[0, 1]] : {T} into tensor<24xf32>\n"
        f"  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [6, 4] : tensor<24xf32> into {R}\n"
        f"  %e2 = tensor.empty() : {T}\n  %3 = linalg.transpose ins(%2 : {R}) outs(%e2 : {T}) permutation = [1, 0]\n"
        f"  %4 = linalg.exp ins(%3 : {T}) outs(%f : {T}) -> {T}\n"
    )
    main = linalg.function("@main", (("x", T),), linalg.call("0", "front", (("x", T),), T), "0", T)
    with pytest.raises(fuseflow.FuseFlowError, match="ends a region") as caught:
        lowered(linalg.function("private @front", (("x", T),), body, "4", T) + main)
    assert caught.value.span is not None and (caught.value.span.file, caught.value.span.line) == ("m.mlir", 7)
