"""Results that are stored n:m where a `keep` made them: what is written, read again, counted and estimated, on both simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from estimate_exact import check_estimate

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, GraphError, ProgramError, SimulationError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.torch_tensors import to_torch
from fuseflow.memory.settings import ComalFixedMemory
from fuseflow.run.artifact_reader import load_saved
from fuseflow.samml.text import parse as parse_graph
from fuseflow.samml.verify import verify
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine, simulate
from fuseflow.sim.reference.node_context import NodeContext
from fuseflow.tensors import Format, Tensor, pack

FIXED = load_machine("rda").model_copy(update={"memory": ComalFixedMemory()})
MACHINES = {"ideal": load_machine("ideal"), "rda": load_machine("rda"), "comal_fixed": FIXED}
ROWS, SIZE = 6, 5
"""The second group of four coordinates has one, and room for two."""


def data(columns: int = SIZE) -> dict[str, npt.NDArray[np.float32]]:
    """Operands of which one row stores nothing, and one product has no entry that relu leaves."""
    rng = np.random.default_rng(3)
    a = np.where(rng.random((ROWS, 7)) < 0.4, rng.standard_normal((ROWS, 7)), 0)
    a[2] = 0
    x = rng.standard_normal((7, columns))
    a[4], x[0] = 0, -1
    a[4, 0] = 1
    return {"A": a.astype(np.float32), "X": x.astype(np.float32), "W": rng.standard_normal((columns, 3)).astype(np.float32)}


def kept(values: npt.NDArray[Any], n: int, m: int) -> npt.NDArray[Any]:
    """Every group of m columns with all but the n largest magnitudes set to 0, the first of equal ones kept."""
    out = np.zeros_like(values)
    for row in range(values.shape[0]):
        for start in range(0, values.shape[1], m):
            group = values[row, start : start + m]
            largest = sorted(range(len(group)), key=lambda j: (-abs(group[j]), j))[:n]
            out[row, [start + j for j in largest]] = group[largest]
    return out


def text(format: str, rule: str = "2 of 4 over j", outputs: str = "Y, H", columns: int = SIZE) -> str:
    return f"""
tensor A[{ROWS}, 7] csr
tensor X[7, {columns}] dense
tensor W[{columns}, 3] dense
tensor H[{ROWS}, {columns}] {format}
T[i, j] = sum(k) A[i, k] * X[k, j]
H[i, j] = keep({rule}) relu(T[i, j])
Y[i, m] = sum(j) H[i, j] * W[j, m]
output {outputs}
"""


def compiled(format: str, machine: Machine, fusion: str = "none", **more: Any) -> ff.Compiled:
    columns = more.get("columns", SIZE)
    return ff.compile(parse(text(format, **more)), tensors=data(columns), machine=machine, schedule=Schedule.fuse(fusion))


def stored(result: ff.Result) -> Tensor:
    """`H` as the region that wrote it left it in memory."""
    return next(region.simulation.outputs["H"] for region in result.regions if "H" in region.simulation.outputs)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("fusion", ["none", "full"])
@pytest.mark.parametrize("format", ["(dense, nm(2:4))", "(compressed, nm(2:4))"])
def test_a_result_is_written_and_read_again(format: str, fusion: str, machine: Machine) -> None:
    """All that other results have: the values of PyTorch, both simulators alike, and the bytes of the estimate."""
    program = compiled(format, machine, fusion)
    runs = [program.run(engine=engine) for engine in ("reference", "fast")]
    assert runs[0].check is not None and runs[0].check.passed
    assert (runs[0].stats, runs[0].cycles) == (runs[1].stats, runs[1].cycles)
    assert [region.simulation.nodes for region in runs[0].regions] == [region.simulation.nodes for region in runs[1].regions]
    check_estimate(program, runs[0])
    for estimator in (Estimator(), Estimator(statistics_only=True)):
        estimated = program.estimate(estimator).stats["bytes"]["by_tensor"]["H"]
        if format.startswith("(dense") or not estimator.statistics_only:  # statistics do not say which rows are empty
            assert estimated == runs[0].stats["bytes"]["by_tensor"]["H"]
    values = data()
    expected = kept(np.maximum(values["A"].astype(float) @ values["X"], 0), 2, 4)
    written = stored(runs[0])
    np.testing.assert_allclose(written.to_dense(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(runs[0].outputs["H"].toarray(), expected, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(written.levels, stored(runs[1]).levels, strict=True):
        assert {k: v.tolist() for k, v in ours.arrays.items()} == {k: v.tolist() for k, v in theirs.arrays.items()}
    is_dense = format.startswith("(dense")
    rows = ROWS if is_dense else len(written.levels[0].arrays["crd"])
    moved = {kind: row["write"] for kind, row in runs[0].stats["bytes"]["by_tensor"]["H"].items()}
    outer = {} if is_dense else {"pos": 8, "crd": 4 * rows}
    assert moved == {"val": rows * 4 * 4, **outer, "crd": outer.get("crd", 0) + rows * 4 * 2 // 8}


def test_pads_cost_firings_that_the_estimate_counts() -> None:
    """A result of which every group is full is written in as many firings as in CSR; else there is one more for each pad."""
    for machine in MACHINES.values():
        firings = {}
        for format in ("csr", "(dense, nm(2:4))"):
            program = compiled(format, machine)
            result = program.run()
            firings[format] = sum(
                node.firings for region in result.regions for node in region.simulation.nodes if node.name == "write_H_val"
            )
            estimated = {work.name: work.firings for region in program.estimate().regions for work in region.work.nodes}
            assert round(estimated["write_H_val"]) == firings[format]
        pads = ROWS * (4 - 3)  # the last group has one coordinate
        assert firings["(dense, nm(2:4))"] == firings["csr"] + pads


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_other_orders_and_vectors(machine: Machine) -> None:
    """Groups of rows, stored column after column; and a vector, which is one fiber."""
    rng = np.random.default_rng(5)
    a = np.where(rng.random((7, 6)) < 0.5, rng.standard_normal((7, 6)), 0).astype(np.float32)
    for declared, statement, format in (
        ("H[7, 6]", "H[i, j] = keep(1 of 3 over i) A[i, j]", "(dense, nm(1:3)) order (1, 0)"),
        ("H[7]", "H[i] = keep(2 of 3 over i) sum(j) A[i, j]", "(nm(2:3))"),
        ("H[7]", "H[i] = keep(1 of 1 over i) sum(j) A[i, j]", "(nm(1:1))"),
        ("H[7]", "H[i] = keep(3 of 200 over i) sum(j) A[i, j]", "(nm(3:200))"),
    ):
        source = f"tensor A[7, 6] csr\ntensor {declared} {format}\n{statement}\noutput H"
        program = ff.compile(parse(source), tensors={"A": a}, machine=machine)
        runs = [program.run(engine=engine) for engine in ("reference", "fast")]
        assert runs[0].check is not None and runs[0].check.passed
        assert (runs[0].stats, runs[0].cycles) == (runs[1].stats, runs[1].cycles)
        check_estimate(program, runs[0])
        assert str(stored(runs[0]).format) == format


def test_a_fiber_that_lacks_more_than_a_line() -> None:
    """Writers go on where a line is full, in the middle of what they add."""
    a = np.zeros((3, 70), dtype=np.float32)
    a[1, 69] = 2
    source = "tensor A[3, 70] csr\ntensor H[3, 70] nm(1:1)\nH[i, j] = keep(1 of 1 over j) A[i, j]\noutput H"
    for machine in MACHINES.values():
        program = ff.compile(parse(source), tensors={"A": a}, machine=machine)
        runs = [program.run(engine=engine) for engine in ("reference", "fast")]
        assert runs[0].check is not None and runs[0].check.passed
        assert (runs[0].stats, runs[0].cycles) == (runs[1].stats, runs[1].cycles)
        assert runs[0].stats["bytes"]["by_tensor"]["H"]["val"]["write"] == 3 * 70 * 4
        check_estimate(program, runs[0])


GRAPH = """
graph copy
tensor A[4, 8]  csr
tensor Y[4, 8]  nm(2:4)
output Y

root = root()
i = scan(root) A.0
j = scan(i.ref) A.1
v = load(j.ref) A
write_i = write(i.crd) Y.0
write_j = write(j.crd) Y.1
write_v = write(v) Y.vals
"""


def test_a_graph_that_writes_too_much_of_a_group() -> None:
    a = np.zeros((4, 8))
    a[2, 4:7] = 1
    graph, tensor = parse_graph(GRAPH), pack(a.astype(np.float32), Format.parse("csr", 2))
    with pytest.raises(SimulationError) as refused:
        simulate(graph, {"A": tensor}, load_machine("rda"))
    assert "level 1 (nm(2:4)), from coordinate 4 of fiber 2 on: 3 of 4 coordinates are stored" in refused.value.message
    assert "`select`" in (refused.value.hint or "")


def test_machine_comal_has_no_times_for_pads() -> None:
    graph, tensor = parse_graph(GRAPH), pack(np.zeros((4, 8), np.float32), Format.parse("csr", 2))
    with pytest.raises(FuseFlowError) as refused:
        simulate(graph, {"A": tensor}, load_machine("comal"))
    assert "`write_j` fills up the fibers of level 1 of `Y`; machine `comal` has no times for that" in refused.value.message
    assert "rules: dataflow" in (refused.value.hint or "")


def test_an_outer_level_is_not_written_n_of_m() -> None:
    with pytest.raises(GraphError) as refused:
        verify(parse_graph(GRAPH.replace("nm(2:4)", "(nm(2:4), dense)")))
    assert "level 0 of `Y` is nm(2:4) and has a level below it" in refused.value.message and refused.value.hint


@pytest.mark.parametrize(
    ("format", "rule", "message", "hint"),
    [
        ("nm(2:4)", "1 of 4 over j", "`keep(1 of 4 over j)` may leave other entries in its groups", "keep(2 of 4 over j) relu"),
        ("nm(2:4)", "2 of 5 over j", "`keep(2 of 5 over j)` may leave other entries in its groups", "or store it `compressed`"),
        ("nm(2:4)", "2 of 4 over i", "along `j`, and `keep(2 of 4 over i)`", "keep(2 of 4 over j)"),
        ("nm(2:4)", "2 over j", "`keep(2 over j)` may leave", "keep(2 of 4 over j)"),
        ("nm(2:4)", "threshold 1", "`keep(threshold 1)` may leave", "keep(2 of 4 over j)"),
        ("(nm(2:4), dense)", "2 of 4 over i", "along `i`, and has a level below that", "store `i` innermost"),
        ("(nm(2:4), nm(2:4))", "2 of 4 over j", "along `i`, and has a level below that", "or `compressed`"),
    ],
)
def test_a_result_that_no_matching_keep_makes(format: str, rule: str, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as refused:
        compiled(format, MACHINES["ideal"], rule=rule)
    assert message in refused.value.message and hint in (refused.value.hint or "")
    assert refused.value.span is not None and refused.value.span.line == 5


def test_a_result_without_a_keep() -> None:
    source = parse(text("nm(2:4)").replace("keep(2 of 4 over j) ", ""))
    with pytest.raises(ProgramError) as refused:
        ff.compile(source, tensors=data())
    assert refused.value.message == "`H` is stored nm(2:4) along `j`, and no `keep` says what its groups hold"
    assert "`H[i, j] = keep(2 of 4 over j) relu(T[i, j])`" in (refused.value.hint or "")


def test_a_format_of_the_schedule(tmp_path: Path) -> None:
    """A schedule file and `--format` declare a result as the program does, and what is saved has its format."""
    path = tmp_path / "schedule.yaml"
    path.write_text("fuse: none\nformat:\n  H: (dense, nm(2:4))\n", encoding="utf-8")
    program = parse(text("csr", outputs="Y").replace(f"tensor H[{ROWS}, {SIZE}] csr\n", ""))
    schedule = Schedule.load(path)
    compiled = ff.compile(program, tensors=data(), schedule=schedule)
    assert compiled.run().stats == ff.compile(parse(text("nm(2:4)", outputs="Y")), tensors=data(), schedule=schedule).run().stats
    compiled.save(tmp_path / "saved")
    saved = load_saved(tmp_path / "saved", data())
    assert saved.source.program.declared["H"].format == Format.parse("nm(2:4)", 2)
    again = Estimator().estimate(saved.regions, saved.source.program, saved.source.tensors, compiled.machine, compiled.name)
    assert again.to_json() == compiled.estimate().to_json()
    with pytest.raises(ProgramError, match=r"along `m`, and no `keep` says"):
        ff.compile(program, tensors=data(), schedule=Schedule.fuse("none").format("Y", "nm(2:4)"))


def test_a_stored_result_in_pytorch() -> None:
    """Pads included, as those of a packed tensor."""
    result = stored(compiled("nm(2:4)", MACHINES["rda"]).run())
    given = to_torch(result)
    assert given.values().numel() == ROWS * 3
    np.testing.assert_array_equal(given.to_dense().numpy(), result.to_dense())


@pytest.mark.parametrize("keep", ["keep(1 of 2 over j) ", ""])
def test_blocks_are_not_kept_in_groups(keep: str) -> None:
    """Magnitudes are those of single elements, so no `keep` says which blocks stay, and no result is stored n:m of blocks."""
    source = f"tensor A[4, 8] csr\ntensor H[4, 8] nm(1:2) block 2x2\nH[i, j] = {keep}A[i, j]\noutput H"
    with pytest.raises(ProgramError) as refused:
        ff.compile(parse(source), tensors={"A": np.eye(4, 8)})
    message = "compares single elements, and `H` is stored in blocks" if keep else "no `keep` says what its groups hold"
    assert message in refused.value.message and refused.value.hint and refused.value.span is not None


def test_a_writer_that_forgets_a_pad_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference without one of its pads has fewer firings than the engine."""
    program = compiled("nm(2:4)", MACHINES["ideal"])
    right = program.run(engine="fast")
    room = NodeContext.room
    monkeypatch.setattr(NodeContext, "room", lambda self, node: max(room(self, node) - 1, 0))
    wrong = program.run(engine="reference")
    assert [r.simulation.nodes for r in wrong.regions] != [r.simulation.nodes for r in right.regions]


def test_a_group_of_two_indices_is_refused() -> None:
    source = "tensor A[2, 3, 2]\ntensor H[2, 6] nm(1:2)\nH[i, r*2 + p] = keep(1 of 2 over p) A[i, r, p]\noutput H"
    with pytest.raises(ProgramError) as refused:
        ff.compile(parse(source), tensors={"A": np.ones((2, 3, 2))})
    assert "along `r*2 + p`, which are two indices" in refused.value.message and refused.value.hint


@pytest.mark.parametrize("fusion", ["none", "full"])
def test_another_dimension_of_two_indices(fusion: str) -> None:
    source = """
        tensor A[6, 3, 2]
        tensor H[6, 6] (dense, nm(1:3)) order (1, 0)
        H[i, r*2 + p] = keep(1 of 3 over i) A[i, r, p]
        Y[i, j] = H[i, j] * 2
        output Y, H
    """
    a = np.random.default_rng(2).standard_normal((6, 3, 2))
    run = ff.compile(parse(source), tensors={"A": a}, schedule=Schedule.fuse(fusion)).run()
    assert run.check is not None and run.check.passed


def test_a_stored_result_seen_in_other_dimensions() -> None:
    """Its other dimension is taken apart where it is read."""
    source = """
        tensor A[6, 8] csr
        tensor H[6, 8] nm(2:4)
        H[i, j] = keep(2 of 4 over j) A[i, j]
        Y[p, q] = sum(j) H[p*2 + q, j]
        output Y, H
    """
    a = np.random.default_rng(2).standard_normal((6, 8))
    for fusion in ("none", "full"):
        run = ff.compile(parse(source), tensors={"A": a}, schedule=Schedule.fuse(fusion)).run()
        assert run.check is not None and run.check.passed
