"""What the estimate calls exact is what the run counts, and no compiled program makes the estimate fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import bitmaps
import hypothesis
import nm_levels
import numpy as np
import pytest
from estimate_exact import check_estimate, differences
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from program_levels import REASONS, Difference
from program_levels import compiled as lowered
from random_programs import Case, planned
from residents import of_program

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, MachineError
from fuseflow.frontend.sources import Source
from fuseflow.memory.settings import ComalFixedMemory
from fuseflow.run.compiled import Compiled
from fuseflow.sim import Machine, load_machine
from fuseflow.sim.configuration_load import ConfigurationLoad

FIXED = load_machine("rda").model_copy(update={"memory": ComalFixedMemory()})
MACHINES = {"ideal": load_machine("ideal"), "comal": load_machine("comal"), "rda": load_machine("rda"), "comal_fixed": FIXED}


def checked(
    text: str, schedule: ff.Schedule, machine: Machine, share: float = 0.4, given: Mapping[str, np.ndarray] | None = None
) -> Compiled:
    """Compile a program on `given` and random tensors, and compare its estimates with its run."""
    program, rng = parse(text), np.random.default_rng(0)
    drawn = {t.name: np.where(rng.random(t.shape) < share, 1.0 + rng.random(t.shape), 0.0) for t in program.inputs}
    tensors = drawn | {name: array for name, array in (given or {}).items() if name in drawn}
    compiled = ff.compile(program, tensors=tensors, schedule=schedule, machine=machine)
    check_estimate(compiled, compiled.run())
    assert compiled.estimate().exact
    return compiled


@pytest.mark.parametrize("machine", MACHINES)
def test_a_result_does_not_repeat_the_coordinates_that_coo_repeats(machine: str):
    text = "tensor B[3, 4, 5] coo\nT[i, j, k] = B[i, j, k] * 2\nY[i, j] = sum(k) T[i, j, k]\noutput Y"
    checked(text, replace(ff.Schedule.fuse("none"), locate="never"), MACHINES[machine])


@pytest.mark.parametrize("inner", ["dense", "compressed"])
def test_a_coordinate_repeats_for_the_levels_that_follow_it_only(inner: str):
    text = f"tensor B[4, 4, 3] (compressed(nonunique), singleton, {inner})\nY[i, j, k] = B[i, j, k] * 2\noutput Y"
    array = np.zeros((4, 4, 3))
    array[[0, 1, 1, 3], [2, 2, 3, 0]] = [1.0, 2.0, 3.0]
    checked(text, ff.Schedule.fuse("full"), MACHINES["ideal"], given={"B": array})


EMPTY_RIGHT = """
tensor A[3, 2, 3] (compressed, dense, dense) order (2, 0, 1)
tensor B[3, 2] dcsc
Y[l, k, j] = sum(r) A[k, r, l] * B[j, r]
output Y
"""
EMPTY_COO = """
tensor A[2, 2] coo
tensor B[2, 2] coo
T[i, j] = sum(k) A[i, k] * B[k, j]
U[i, j] = sum(k) A[k, i] * T[k, j]
Y[i] = sum(j) U[i, j] * B[j, i]
output Y
"""


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize(("text", "full"), [(EMPTY_RIGHT, "A"), (EMPTY_COO, "")], ids=["right", "coo"])
def test_operands_without_entries(text: str, full: str, fuse: str):
    """Below a level without fibers, the lists of the other operand never occur."""
    tensors = {t.name: np.full(t.shape, float(t.name == full)) for t in parse(text).inputs}
    checked(text, ff.Schedule.fuse(fuse), MACHINES["ideal"], given=tensors)


VIEWS = """
tensor X[6] dense
U[i] = X[i] * 2
T[a, b] = U[a*2 + b]
S[c, d] = U[c*3 + d]
Y[a] = sum(b) T[a, b] * T[a, b]
Z[c] = sum(d) S[c, d]
W[c, d] = S[c, d] * Z[c]
output W
output S
output T
output U
"""


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_a_view_of_an_output_is_seen_again(fuse: str):
    """A later region reads a view of the view that follows the region that wrote it."""
    compiled = checked(VIEWS, ff.Schedule.fuse(fuse), MACHINES["rda"])
    after = {view.name for region in compiled.regions for view in region.views_after}
    assert after & {view.source for region in compiled.regions for view in region.views_before}


@pytest.mark.parametrize("machine", ["rda", "comal_fixed"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_elements_longer_than_a_line_of_the_memory(dtype: str, machine: str):
    """Comal's fixed pipe moves 4 bytes at a time. All rows are looked up, and most of them are empty."""
    text = f"tensor B[5, 12] csr {dtype}\ntensor A[12, 6] csr {dtype}\nY[i, j] = sum(k) B[i, k] * A[k, j]\noutput Y"
    a = np.zeros((12, 6))
    a[[3, 7], [2, 1]] = 1.0
    compiled = ff.compile(
        parse(text), tensors={"A": a, "B": np.ones((5, 12))}, schedule=ff.Schedule.fuse("full"), machine=MACHINES[machine]
    )
    result = compiled.run()
    check_estimate(compiled, result)
    (estimate,), (run,) = compiled.estimate().regions, result.regions
    assert run.simulation.memory is not None
    assert estimate.bound.memory == pytest.approx(run.simulation.memory.bound, rel=0.5)


@pytest.mark.parametrize("machine", ["rda", "comal_fixed"])
@pytest.mark.parametrize("format", ["csr", "dcsr", "(compressed, bitmap)", "(bitmap, compressed)", "dense"])
def test_writers_fire_for_the_lines_that_are_left_over(format: str, machine: str):
    text = f"tensor A[9, 17] {format}\ntensor Y[9, 17] {format}\nY[i, j] = A[i, j] * 2\noutput Y"
    checked(text, ff.Schedule.fuse("full"), MACHINES[machine])


def test_writers_fire_for_every_line_that_a_tile_fills():
    text = "tensor A[24, 24] csr block 8x8\ntensor Y[24, 24] csr block 8x8\nY[i, j] = A[i, j] * 2\noutput Y"
    checked(text, ff.Schedule.fuse("full"), MACHINES["rda"])


@pytest.mark.parametrize("machine", ["ideal", "rda", "comal_fixed"])
@pytest.mark.parametrize("format", ["nm(3:3)", "(compressed, nm(5:5))", "(nm(4:4), compressed)", "(nm(7:7), dense)"])
def test_offsets_are_counted_in_bytes_rounded_up_once(format: str, machine: str):
    text = f"tensor A[9, 17] {format}\ntensor Y[9, 17] csr\nY[i, j] = A[i, j] * 2\noutput Y"
    checked(text, ff.Schedule.fuse("full"), MACHINES[machine])


@pytest.mark.parametrize("format", ["csr", "dcsr", "(dense, bitmap)", "csr block 2x4"])
def test_a_stand_in_stores_what_was_computed(format: str):
    """A later region reads random numbers where the user declared a format, in the places that the region before wrote."""
    statements = "T[i, j] = A[i, j] * 2\nU[i, j] = T[i, j] * A[i, j]\nY[i] = sum(j) U[i, j]\noutput Y"
    text = f"tensor A[6, 8] csr\ntensor T[6, 8] {format}\n{statements}"
    checked(text, ff.Schedule.fuse("none").lower(intermediates="dense"), MACHINES["rda"])


DRAWS = settings(database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def compiled_on(machine: Machine, case: Case, *reasons: str) -> Compiled | None:
    """Compile a case; None if it is refused for one of the usual reasons, or of these."""
    try:
        schedule, program, regions = lowered(case)
    except FuseFlowError as error:
        if any(reason in error.message for reason in (*REASONS, *reasons)):
            return None
        raise
    return Compiled(Source("random", case.program, case.tensors), program, schedule, tuple(regions), machine, 0.0)


def test_random_programs_on_stand_ins():
    exact, stand_ins = 0, 0

    @hypothesis.seed(3)
    @settings(DRAWS, max_examples=60)
    @given(case=planned())
    def check(case: Case) -> None:
        nonlocal exact, stand_ins
        compiled = compiled_on(MACHINES["rda"], replace(case, schedule=case.schedule.lower(intermediates="dense")))
        if compiled is None:
            return
        check_estimate(compiled, compiled.run(check=False))
        exact += compiled.estimate().exact
        declared = compiled.program.declared
        between = {name for region in compiled.regions for name in region.graph.outputs} - set(compiled.program.outputs)
        stand_ins += any(not declared[name].format.all_dense for name in between if name in declared)

    check()
    assert exact >= 40 and stand_ins >= 5


def test_random_programs():
    exact = dict.fromkeys(MACHINES, 0)

    @hypothesis.seed(3)
    @settings(DRAWS, max_examples=20)
    @given(case=planned())
    def check(case: Case) -> None:
        first = compiled_on(MACHINES["ideal"], case)
        for name, machine in MACHINES.items() if first else ():
            compiled = replace(first, machine=machine)
            try:
                result = compiled.run(check=False)
            except MachineError:
                continue  # comal has no times for it
            check_estimate(compiled, result)
            exact[name] += compiled.estimate().exact

    check()
    assert min(exact.values()) >= 10


def test_random_programs_with_resident_inputs():
    """Bytes that are read, bytes of the configuration and firings; with levels of all kinds, n:m and bitmap levels among them."""
    residents = 0

    @hypothesis.seed(5)
    @settings(DRAWS, max_examples=25)
    @given(case=planned().map(nm_levels.in_program).map(bitmaps.in_program), seed=st.integers(0, 99))
    def check(case: Case, seed: int) -> None:
        nonlocal residents
        names = of_program(case.program, seed)
        resident = replace(case, schedule=case.schedule.lower(resident=names))
        compiled = compiled_on(MACHINES["rda"], resident, "cannot be resident")
        if compiled is None:
            return
        result = compiled.run(check=False)
        check_estimate(compiled, result)
        assert not set(names) & result.stats["bytes"]["by_tensor"].keys()
        residents += result.config.bytes > 0

    check()
    assert residents >= 15


def test_a_wrong_number_is_found():
    """One word of one array, one firing of one node: each is a difference."""
    text = "tensor A[4, 5] csr\ntensor X[5, 3] csr\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"
    compiled = checked(text, ff.Schedule.fuse("full"), MACHINES["rda"])
    estimate, result = compiled.estimate(), compiled.run()
    (region,), work = estimate.regions, estimate.regions[0].work
    for at, row in enumerate(work.traffic):
        traffic = (*work.traffic[:at], replace(row, bytes=row.bytes + 4), *work.traffic[at + 1 :])
        wrong = replace(estimate, regions=(replace(region, work=replace(work, traffic=traffic)),))
        assert any(f"`{row.tensor}`, {row.direction}" in line for line in differences(compiled, wrong, result))
    for at, node in enumerate(work.nodes):
        nodes = (*work.nodes[:at], replace(node, firings=node.firings + 1), *work.nodes[at + 1 :])
        wrong = replace(estimate, regions=(replace(region, work=replace(work, nodes=nodes)),))
        assert any(f"`{node.name}` fires" in line for line in differences(compiled, wrong, result))
    wrong = replace(estimate, regions=(replace(region, config=ConfigurationLoad(4, 1)),))
    assert any("the configuration" in line for line in differences(compiled, wrong, result))
    wrong_result = replace(result, regions=())
    with pytest.raises(Difference, match="the regions are"):
        check_estimate(compiled, wrong_result)


ONE_COLUMN = """
tensor A[4, 4] {0}
tensor x[4, 1] {1}
T[i, j] = sum(k) A[i, k] * x[k, j]
G[i] = sum(j) T[i, j] * 2
output G
"""
ONE_ROW = "tensor x[1, 5] {0}\nT[i, j] = x[i, j] * 2\nG[j] = sum(i) T[i, j] + 1\noutput G\n"
ONE_OF_EACH = (
    "tensor S[1, 1, 6] {0}\nT[a, b, j] = S[a, b, j] * 2\nG[j] = T[0, 0, j] * 3\nH[j] = sum(a, b) T[a, b, j]\noutput G\noutput H\n"
)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    "text",
    [
        *(ONE_COLUMN.format(*formats) for formats in (("csc", "csc"), ("csr", "csc"), ("csc", "csr"), ("dcsc", "dcsc"))),
        *(ONE_ROW.format(format) for format in ("csr", "dcsr", "csc", "coo")),
        *(
            ONE_OF_EACH.format(format)
            for format in ("(dense, dense, compressed)", "csf", "(compressed, dense, dense) order (2, 0, 1)")
        ),
    ],
)
def test_a_level_below_a_dimension_of_extent_1_is_scanned_from_the_root(text: str, share: float):
    """Of a column that stored nothing, the estimate took the fiber of another one, called 3 FLOPs and 40 bytes exact, and the run had 0
    and 16."""
    a = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]])
    checked(text, ff.Schedule.fuse("none"), MACHINES["ideal"], share, {"A": a})
