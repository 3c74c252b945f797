"""Workspaces do in every cycle what the reference simulator does: at every number of keys from 1 to 70, at 256, and at more up to 4,096.

Of more than 64 keys the bits lie in words. Slow tests give all sizes to Icarus, a linter and a synthesizer, too.
"""

from __future__ import annotations

import numpy as np
import pytest
from hardware_tools import require
from workspace_graphs import SIZES, workspace_graph, workspace_tensors

from fuseflow.hardware.circuit import build_circuit
from fuseflow.hardware.comparison import differences, simulated
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.evaluate import evaluate
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine
from fuseflow.tensors import Format, Tensor, pack

ROWS = """
tensor A[{rows}, {columns}] csr f32
tensor y[{columns}] (compressed) f32
output y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
acc = accumulate(A_i.crd, A_j.crd, A_v) sum order=1
y_j = write(acc.crd) y.0
y_v = write(acc.val) y.vals
"""
TURNED = """
tensor A[{rows}, {columns}] csr f32
tensor Y[{columns}, {rows}] (compressed, compressed) f32
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
turned = permute(A_i.crd, A_j.crd, A_v) order=1,0
Y_j = write(turned.crd0) Y.0
Y_i = write(turned.crd1) Y.1
Y_v = write(turned.val) Y.vals
"""
CASES = {
    "65 keys": (ROWS, 5, 65),
    "300 keys": (ROWS, 6, 300),
    "4,096 keys": (ROWS, 3, 4096),
    "keys of two coordinates": (TURNED, 30, 20),
    "4,096 keys of two coordinates": (TURNED, 64, 64),
}


def matrix(rows: int, columns: int, density: float) -> Tensor:
    rng = np.random.default_rng(rows * columns)
    values = np.where(rng.random((rows, columns)) < density, rng.standard_normal((rows, columns)).astype(np.float32), 0)
    values[:, -1] = 1  # the last key, too
    return pack(values.tolist(), Format.parse("csr", 2))


@pytest.mark.parametrize("name", CASES)
def test_the_rules(name: str) -> None:
    text, rows, columns = CASES[name]
    graph, machine = parse(text.format(rows=rows, columns=columns)), load_machine("rtl", {"interval.fold": 1})
    tensors = {"A": matrix(rows, columns, min(0.4, 300 / rows / columns))}
    expected = simulated(graph, tensors, machine, engine="reference")
    circuit = build_circuit(expected.graph, machine)
    assert not list(differences(circuit, expected, evaluate(circuit, tensors)))
    registers = circuit.units[4].module.registers
    assert max(register.width for register in registers.values()) <= 64


@pytest.mark.parametrize("name", ["65 keys", "keys of two coordinates"])
def test_in_icarus(name: str) -> None:
    require("pycde", "iverilog", "vvp")
    text, rows, columns = CASES[name]
    run = cosimulate(
        parse(text.format(rows=rows, columns=columns)), {"A": matrix(rows, columns, 0.3)}, load_machine("rtl"), "icarus"
    )
    assert run.difference is None


def test_the_rules_at_every_size() -> None:
    graph, tensors, machine = workspace_graph(SIZES), workspace_tensors(SIZES), load_machine("rtl")
    expected = simulated(graph, tensors, machine, engine="reference")
    circuit = build_circuit(expected.graph, machine)
    assert not list(differences(circuit, expected, evaluate(circuit, tensors)))
    kinds = [unit.node.op for unit in circuit.units]
    assert kinds.count("accumulate") == kinds.count("permute") == len(SIZES)


@pytest.mark.parametrize("sizes", [(1, 2, 3, 8, 9, 64, 65, 256), pytest.param(SIZES, marks=pytest.mark.slow, id="all")])
def test_sizes_in_icarus(sizes: tuple[int, ...]) -> None:
    require("pycde", "iverilog", "vvp")
    run = cosimulate(workspace_graph(sizes), workspace_tensors(sizes), load_machine("rtl"), "icarus")
    assert run.difference is None
