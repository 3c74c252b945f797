"""Runs in 32-bit floats, slow folds, and links between two processes that fill: what they give, in how many cycles, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sources
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.parse import parse as parse_program
from fuseflow.errors import MachineError
from fuseflow.samml.text import parse
from fuseflow.sim import Simulation, load_machine, simulate
from fuseflow.sim.precision import unheld_value
from fuseflow.tensors import Format, Tensor, pack

SUM = """
tensor A[4, 40] csr
tensor x[40] dense
y[i] = 0.1 * (sum(k) A[i, k] * x[k])
output y
"""
EMPTY_FIBERS = parse("""
graph rows
tensor A[40, 3] csr f32
tensor B[3, 4] csr f32
tensor Y[40, 4] csr f32
output Y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
B_k = locate(A_k.crd) B.0
B_j = scan(B_k) B.1
B_v = load(B_j.ref) B
acc = accumulate(A_k.crd, B_j.crd, B_v) sum order=1
Y_i = write(A_i.crd) Y.0
Y_j = write(acc.crd) Y.1
Y_v = write(acc.val) Y.vals
""")
"""Each empty row of A is a stop without entries."""


def on_both(graph: Any, tensors: dict[str, Tensor], **settings: Any) -> Simulation:
    machine = load_machine("ideal", {key.replace("__", "."): value for key, value in settings.items()})
    runs = [simulate(graph, tensors, machine, engine=engine) for engine in ("reference", "fast")]
    assert runs[0].cycles == runs[1].cycles and runs[0].nodes == runs[1].nodes
    for name, tensor in runs[0].outputs.items():
        np.testing.assert_array_equal(tensor.values, runs[1].outputs[name].values)
    return runs[0]


def rows(count: int) -> dict[str, Tensor]:
    """A matrix A of which the last of 40 rows, and so many others, are not empty."""
    a = np.zeros((40, 3), np.float32)
    a[-1] = a[:count] = 1
    formats = EMPTY_FIBERS.declared
    return {"A": pack(a, formats["A"].format), "B": pack(np.ones((3, 4), np.float32), formats["B"].format)}


def test_f32_is_the_arithmetic_of_numpy_in_32_bits() -> None:
    """Every product and every partial sum is rounded, and so is the constant."""
    rng = np.random.default_rng(1)
    a, x = (rng.standard_normal(shape, dtype=np.float32) for shape in ((4, 40), (40,)))
    compiled = ff.compile(parse_program(SUM), tensors={"A": a, "x": x}, machine="rtl")
    expected = []
    for row in a:
        total = np.float32(0)
        for value, factor in zip(row, x, strict=True):
            total = np.float32(total + value * factor)
        expected.append(np.float32(0.1) * total)
    results = {engine: compiled.run(engine=engine).outputs["y"].tolist() for engine in ("reference", "fast")}
    assert results["reference"] == results["fast"] == [float(value) for value in expected]


def test_a_slow_fold_takes_its_cycles_for_each_value_and_nothing_else() -> None:
    """The busiest node of a dense row sum is then the reduction, and the estimate knows it."""
    program = parse_program("tensor A[2, 50] dense\ny[i] = sum(k) A[i, k]\noutput y\n")
    cycles = {}
    for fold in (1, 2, 5):
        machine = load_machine("ideal", {"interval.fold": fold})
        compiled = ff.compile(program, tensors={"A": np.ones((2, 50), np.float32)}, machine=machine)
        cycles[fold] = compiled.run().cycles
        reduction = next(node for node in compiled.run().regions[0].simulation.nodes if node.op == "reduce")
        stops = reduction.firings - 100
        assert reduction.occupied == 100 * fold + stops
        estimated = compiled.estimate()
        assert abs(estimated.cycles - cycles[fold]) <= 12
    assert cycles[5] - cycles[2] == 3 * 100 and cycles[2] - cycles[1] >= 90


def test_emitting_folds_nothing() -> None:
    """Filling takes 3 cycles a value, and each entry of the result goes in a cycle."""
    run = on_both(EMPTY_FIBERS, rows(0), interval__fold=3)
    accumulate = next(node for node in run.nodes if node.op == "accumulate")
    slow = on_both(EMPTY_FIBERS, rows(0), interval__fold=30)
    assert slow.cycles - run.cycles == 27 * 12
    assert accumulate.occupied >= 3 * 12


@pytest.mark.parametrize("depth", [1, 2, 16])
def test_a_full_link_holds_the_filling_back(depth: int) -> None:
    """Stops without a workspace queue up in front of emission only as far as there are slots. Values do not depend on that."""
    free = on_both(EMPTY_FIBERS, rows(1), latency__default=1)
    bounded = on_both(EMPTY_FIBERS, rows(1), handover_depth=depth)
    np.testing.assert_array_equal(bounded.outputs["Y"].to_dense(), free.outputs["Y"].to_dense())
    assert bounded.cycles >= free.cycles
    if depth == 1:
        assert bounded.cycles > free.cycles
        blocked = next(node for node in bounded.nodes if node.op == "accumulate")
        assert blocked.blocked > next(node for node in free.nodes if node.op == "accumulate").blocked


COPY = """
graph w
tensor A[3] dense i64
tensor y[3] dense {result}
output y
root = root()
A_i = scan(root) A.0
A_v = load(A_i.ref) A
sum = alu(A_v, A_v) add N->0,N->0
y_i = write(A_i.crd) y.0
y_v = write(sum) y.vals
"""


def doubled(values: list[int], result: str = "i64") -> list[float]:
    """Run a graph that doubles 64-bit integers in 32-bit floats."""
    graph = parse(COPY.format(result=result))
    tensors = {"A": pack(np.array(values), graph.declared["A"].format)}
    values = simulate(graph, tensors, load_machine("rtl")).outputs["y"].values.tolist()
    return values


def test_a_graph_computes_with_integers_that_32_bits_hold() -> None:
    assert doubled([2**23, -5, 1 - 2**23]) == [2**24, -10, 2 - 2**24]


@pytest.mark.parametrize("values", [[0, 2**24 + 1, 0], [-(2**24) - 1, 0, 0], [2**40, 0, 0], [-(2**63), 0, 0]])
def test_a_graph_that_reads_a_wider_integer_is_refused(values: list[int]) -> None:
    with pytest.raises(MachineError) as caught:
        doubled(values)
    assert str(caught.value) == (
        f"error[machine]: graph `w`: tensor `A` holds {min(values) or max(values):,}; machine `rtl` computes in 32-bit floats, which hold "
        "integers up to 2^24 in magnitude and 24 binary digits of other numbers\n"
        "  hint: take a machine with `arithmetic: element`"
    )


def test_a_graph_that_computes_a_wider_integer_is_refused() -> None:
    with pytest.raises(MachineError, match="tensor `y` holds 16,777,218; machine `rtl`"):
        doubled([1, 2**23 + 1, 0])


@pytest.mark.parametrize("value", [0.1, 2.0**128, 1.0 + 2.0**-24, 2.0**-150])
def test_a_number_of_64_bits_that_32_do_not_hold_is_found(value: float) -> None:
    held = np.array([0.5, np.inf, np.nan, 2.0**40, 2.0**-149, 0.0])
    assert unheld_value(pack(held, Format.dense(1))) is None
    assert unheld_value(pack(np.append(held, value), Format.dense(1))) == value
    assert unheld_value(pack(held, Format.parse("csf", 1), value)) == value


def test_a_graph_that_computes_wider_floats_is_refused() -> None:
    with pytest.raises(MachineError, match="graph `w`: tensor `y` has elements of f64; machine `rtl` computes in 32-bit floats"):
        doubled([1, 2, 3], "f64")


@pytest.mark.parametrize("dtype", ["f64", "i32", "i64"])
def test_a_program_with_wide_elements_is_refused_at_its_declaration(tmp_path: Path, dtype: str) -> None:
    file = tmp_path / "wide.ein"
    file.write_text(f"tensor x[3] dense\ntensor A[4, 3] csr {dtype}\ny[i] = sum(k) A[i, k] * x[k]\noutput y\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["run", str(file), "--machine", "rtl"])
    assert result.exit_code == 2
    assert (
        f"{file}:2:8: error[machine]: tensor `A` has elements of {dtype}; machine `rtl` computes in 32-bit floats"
        in result.output
    )


@pytest.mark.parametrize("dtype", ["i4", "u8", "i16", "f16", "bf16"])
def test_narrow_elements_are_32_bit_floats(dtype: str) -> None:
    program = parse_program(f"tensor A[4, 3] csr {dtype}\ntensor x[3] dense\nY[i, k] = A[i, k] * x[k]\noutput Y\n")
    data = {"A": np.arange(12).reshape(4, 3) % 7, "x": np.ones(3, np.float32)}
    assert ff.compile(program, tensors=data, machine="rtl").run().check.passed


@pytest.mark.parametrize("model", ["gcn.py", "graphsage.py", "sae.py", "gpt_bigbird.py"])
def test_models_pass_in_32_bits(model: str) -> None:
    """Within 1e-4 of PyTorch."""
    data = "images:side=6,count=3" if model == "sae.py" else None
    result = sources.compiled(model, ff.Schedule(), "rtl", {"small": True}, data).run()
    assert result.check is not None and result.check.passed and result.check.max_rel_error <= 1e-4
