"""References that no tensor has, and inputs that do not fit: an error that names the node, from both simulators, never a traceback.

The verifier refuses the graphs that lead there, so these are run as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import drive, inputs_of

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.tokens import D, N, stop
from fuseflow.sim import Machine
from fuseflow.sim.engine.execute import execute as fast
from fuseflow.sim.reference.execute import execute as reference
from fuseflow.tensors import Format, Tensor, pack

END = stop(0, 0)
MATRIX = np.array([[1.0, 2.0], [0.0, 3.0], [4.0, 0.0]])


def matrix(levels: str) -> dict[str, Tensor]:
    return {"A": pack(MATRIX, Format.parse(levels, 2))}


@pytest.mark.parametrize("beyond", [-1, 0, 5])
@pytest.mark.parametrize("levels", ["dense", "csr", "dcsr", "coo", "(dense, dense) order (1, 0)"])
def test_scan(levels: str, beyond: int) -> None:
    tensors = matrix(levels)
    outside = beyond if beyond < 0 else tensors["A"].levels[0].entries + beyond
    with pytest.raises(SimulationError, match=r"node `s` \(scan\): a reference is outside its tensor after \d+ firings"):
        drive(n.Scan("s", inputs_of(1), "A", 1), [0, outside, END, D], tensors=tensors)


def test_scan_of_a_level_of_size_0() -> None:
    """It does not say how many parents it has, and has nothing below any."""
    tensors = {"A": pack(np.zeros((3, 0)), Format.dense(2))}
    found = drive(n.Scan("s", inputs_of(1), "A", 1), [0, 2, END, D], tensors=tensors).tokens[0]
    assert found == [END, stop(0, 1), D]


@pytest.mark.parametrize("outside", [-1, 3, 7])
def test_load(outside: int) -> None:
    decl = n.TensorDecl("A", (3,), Format.dense(1))
    with pytest.raises(SimulationError, match=r"node `l` \(load\): a reference is outside its tensor after 2 firings"):
        drive(
            n.Load("l", inputs_of(1), "A"),
            [2, N, outside, END, D],
            tensors={"A": pack([1.0, 2, 3], decl.format)},
            declared=[decl],
        )


def test_locate_of_absent_coordinates() -> None:
    decl = n.TensorDecl("A", (3, 4), Format.dense(2))
    found = drive(n.Locate("l", inputs_of(2), "A", 1), [1, N, 2, N, END, D], [2, 1, N, N, END, D], declared=[decl]).tokens[0]
    assert found == [9, N, N, N, END, D]


@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_operands_that_end_at_different_places(arity: int, late: bool) -> None:
    streams: list[list[Any]] = [[1.0, END, D]] * (arity - 1) + [[1.0, 2.0, END, D]]
    node = n.Alu("f", inputs_of(arity), "where" if arity == 3 else "eq", (n.Operand(0.0),) * arity)
    with pytest.raises(SimulationError, match="its inputs differ in structure"):
        drive(node, *(streams if late else streams[::-1]))


@pytest.mark.parametrize("execute", [reference, fast])
@pytest.mark.parametrize(
    ("level", "stored", "read", "firings"),
    [
        ("compressed", [0, 1, 4], "x = load(l) V", 2),  # gathered
        ("compressed", [3], "x = load(l) V", 0),
        ("dense", [0, 1, 2, 3, 4], "x = load(l) V", 3),  # one piece of consecutive references
        ("compressed", [1, 4], "one = range(l) 2\nr = repeat(l, one)\nx = load(r) V", 3),  # one reference repeated
        ("compressed", [2, 4], "x = scan(m) W.1", 2),
    ],
)
def test_both_simulators_say_it(level: str, stored: list[int], read: str, firings: int, execute: Callable[..., object]) -> None:
    """With the firings before the reference, however many were computed in one piece."""
    graph = parse(f"""
        graph g
        tensor A[5]  ({level})
        tensor V[3]  dense
        tensor W[3, 2]  csr
        root = root()
        i = scan(root) A.0
        l = locate(i.crd) V.0
        m = locate(i.crd) W.0
        {read}
    """)
    values = np.zeros(5)
    values[stored] = 1.0
    tensors = {
        "A": pack(values, Format.of(level)),
        "V": pack([1.0, 2.0, 3.0], Format.dense(1)),
        "W": pack(MATRIX, Format.parse("csr", 2)),
    }
    with pytest.raises(SimulationError, match=rf"node `x` \(\w+\): a reference is outside its tensor after {firings} firings"):
        execute(graph, tensors, Machine(name="ideal"))
