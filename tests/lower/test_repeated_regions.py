"""A region that differs from an earlier one in names alone is what it would be if there were no earlier one."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import programs
import pytest
from hypothesis import HealthCheck, given, settings
from random_programs import Case, planned

from fuseflow.einsum.index_names import substitute_tensors
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError
from fuseflow.fusion.order_graph import graph_edges
from fuseflow.fusion.region_program import show as show_region
from fuseflow.lower.partition import partition_program
from fuseflow.lower.program import lower_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.state import LoweringMemo, Precedent
from fuseflow.schedule import Schedule
from fuseflow.table import emit
from fuseflow.tensors import Tensor


class Nothing(dict[Hashable, Any]):
    """A memo that keeps nothing."""

    def __contains__(self, key: object) -> bool:
        return False


def repeated(program: Program) -> Program:
    """The program with every Einsum once more, on the same inputs. The names of the second ones are in the opposite order."""
    names = {e.name: f"{e.name}.n{len(program.einsums) - n:03}" for n, e in enumerate(program.einsums)}
    einsums = tuple(replace(e, name=names[e.name], body=substitute_tensors(e.body, names)) for e in program.einsums)
    tensors = tuple(replace(t, name=names[t.name]) for t in program.tensors if t.name in names)
    outputs = (*program.outputs, *(names[output] for output in program.outputs))
    return replace(program, tensors=(*program.tensors, *tensors), einsums=(*program.einsums, *einsums), outputs=outputs)


def facts(region: CompiledRegion) -> tuple[object, ...]:
    """All that is known of a region."""
    fused, table = region.fused, region.table
    edges = [(u, v, edge.why, list(map(str, edge.by))) for u, v, edge in graph_edges(fused.constraints)]
    compared = [(candidate.order, candidate.cost, candidate.refusal) for candidate in fused.compared]
    merges = [(str(reduction), index) for reduction, index in fused.merges]
    written = [(result.tensor, result.indices, result.levels, result.drop_zeros) for result in fused.results]
    choices = fused.order, fused.locate, fused.repeat, fused.rescan, fused.copies, fused.einsums, fused.name
    sizes = list(fused.sizes.items()), list(fused.stored.items()), fused.local_names, list(map(repr, fused.fill.values()))
    evaluations = [(str(e.port), e.around) for e in table.evaluations]
    cells = table.steps, table.writes, table.nodes, table.tensors, evaluations, table.loops
    return show_region(fused), edges, compared, merges, written, choices, sizes, cells, region.graph, region.estimate


def check(program: Program, schedule: Schedule, tensors: dict[str, Tensor]) -> int:
    """Compare every region with what it is on its own. Return how many regions there are."""
    partitioned = partition_program(program, schedule)
    memo = LoweringMemo()
    known = list(lower_regions(partitioned, tensors, memo))
    alone = list(lower_regions(partitioned, tensors, LoweringMemo(*[Nothing() for _ in range(4)])))
    for one, other in zip(known, alone, strict=True):
        assert facts(one) == facts(other), one.name
        assert replace(one.graph, fiber_fifos=()) == emit(one.table)
    assert all(isinstance(precedent, Precedent) for precedent in memo.fusions.values())
    return len(known) - len(memo.fusions)


def halves(program: Program) -> Schedule:
    """One region for the Einsums of a program, and one for their repetition."""
    names = [e.name for e in program.einsums]
    half = len(names) // 2
    return Schedule.fuse("first", "second").region("first", *names[:half]).region("second", *names[half:])


@pytest.mark.parametrize("name", programs.TEXTS)
def test_a_repeated_program_is_lowered_as_if_it_were_alone(name: str) -> None:
    program = repeated(parse(programs.TEXTS[name]))
    saved = []
    for schedule in (halves(program), Schedule.fuse("none"), halves(program).lower(iteration="global")):
        with suppress(FuseFlowError):  # not all of them can be fused
            saved.append(check(program, schedule, {}))
    assert any(saved), "a region was repeated"


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(planned())
def test_a_repeated_random_program_is_lowered_as_if_it_were_alone(case: Case) -> None:
    program = repeated(case.program)
    for schedule in (halves(program), Schedule.fuse("none")):
        with suppress(FuseFlowError):
            check(program, schedule, case.tensors)


def test_a_label_that_an_einsum_has_is_avoided_under_other_names_too() -> None:
    text = """
        tensor X[4, 6] dense
        {0}.max[i] = max(j) X[i, j]
        {0}[i] = max(k) abs(X[i, k]) + {0}.max[i] + sum(k) X[i, k]
        {1}[i] = max(j) X[i, j]
        {1}.b[i] = max(k) abs(X[i, k]) + {1}[i] + sum(k) X[i, k]
        output {0}
        output {1}.b
    """
    program = parse(text.format("Y", "Z"))
    schedule = Schedule.fuse("a", "b").region("a", "Y.max", "Y").region("b", "Z", "Z.b")
    assert check(program, schedule, {}) == 1


@pytest.mark.parametrize("name", ["rep", "A", "write_Y", "intersect", "Z.copy"])
def test_a_tensor_that_is_called_like_a_node_numbers_the_nodes_anew(name: str) -> None:
    text = """
        tensor A[4, 4] csr
        tensor B[4, 4] csr
        tensor X[4, 4] csr
        tensor {0}2[4, 4] csr
        Y[i, j] = sum(k) A[i, k] * X[k, j]
        Z[i, j] = sum(k) B[i, k] * {0}2[k, j]
        output Y
        output Z
    """
    program = parse(text.format(name).replace(f"{name}2", name if name != "A" else "A_k"))
    assert check(program, Schedule.fuse("none"), {}) == 1


def test_an_index_that_is_called_like_a_result_leaves_the_names_to_the_table() -> None:
    text = """
        tensor A[4, 4] csr
        tensor B[4, 4] csr
        tensor X[4, 4] csr
        j[i, j] = keep(threshold 0.5) A[i, j] * X[i, j]
        Z[i, j] = keep(threshold 0.5) B[i, j] * X[i, j]
        output j
        output Z
    """
    assert check(parse(text), Schedule.fuse("none"), {}) == 1


BROADCAST = """tensor x[4, 3] dense
tensor y[4, 3] dense
tensor a[4, 2, 3] {first}
tensor b[4, {extent}, 3] {second}
a[i, j, k] = x[i, k]
b[i, j, k] = y[i, k]
output a, b
"""


@pytest.mark.parametrize(("extent", "first", "second"), [(1, "", ""), (5, "", ""), (2, "f16", ""), (2, "", "bf16")])
def test_a_result_of_another_extent_or_type_is_no_repetition(extent: int, first: str, second: str) -> None:
    """The extent of a dimension that no operand has, and the type, stand in the declaration of a result alone."""
    program = parse(BROADCAST.format(extent=extent, first=first, second=second))
    regions = lower_regions(partition_program(program, Schedule.fuse("none")), {})
    written = {d.name: (d.shape, d.dtype) for region in regions for d in region.graph.tensors if d.name in region.graph.outputs}
    assert written == {"a": ((4, 2, 3), first or "f32"), "b": ((4, extent, 3), second or "f32")}
