"""Arrays of units: NumPy's results, as many units as the machine has for tiles, and the simulator's cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hardware_tools import require

from fuseflow.hardware.arithmetic import Arithmetic
from fuseflow.hardware.circuit import Circuit, build_circuit
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.rule_netlist import expressions, netlist
from fuseflow.hardware.tile_array import TILE_WORK, Row, TileWork
from fuseflow.samml.text import parse
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor, from_coordinates
from fuseflow.tensors.format import Format
from fuseflow.tile_ops import TileShape, result_shape

COUNT = 3
"""The tiles of a tensor."""
Array = npt.NDArray[np.float64]

FUNCTIONS = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "matmul": np.matmul,
    "matmul_t": lambda a, b: a @ b.swapaxes(1, 2),
    "transpose": lambda a: a.swapaxes(1, 2),
    "row_sum": lambda a: a.sum(2, keepdims=True),
    "row_max": lambda a: a.max(2, keepdims=True),
    "col_sum": lambda a: a.sum(1, keepdims=True),
    "col_min": lambda a: a.min(1, keepdims=True),
}
CASES: list[tuple[str, tuple[TileShape, ...]]] = [
    *((name, (tile, tile)) for name in ("add", "mul", "matmul_t") for tile in ((2, 3), (4, 4))),
    ("add", ((3, 1), (1, 5))),
    ("max", ((2, 3), (1, 3))),
    ("matmul", ((2, 3), (3, 5))),
    ("matmul", ((4, 4), (4, 4))),
    ("matmul", ((1, 6), (6, 1))),
    ("matmul", ((6, 1), (1, 2))),
    *((name, ((3, 5),)) for name in ("transpose", "row_sum", "row_max", "col_sum", "col_min")),
    ("col_sum", ((4, 1),)),
]
UNITS = (1, 2, 3, 4, 7, 16, 256)


def computed(function: str, tiles: tuple[TileShape, ...]) -> str:
    names = "AB"[: len(tiles)]
    shown = {name: f"{rows}x{columns}" for name, (rows, columns) in zip(names, tiles, strict=True)}
    result = result_shape(function, tiles)
    tile = f" tile {result[0]}x{result[1]}" if result else ""
    return "\n".join(
        [
            *(f"tensor {name}[{COUNT}] dense f32 tile {tile}" for name, tile in shown.items()),
            f"tensor Y[{COUNT}] dense f32{tile}",
            "output Y",
            "root = root()",
            "i = scan(root) A.0",
            *(f"{name}_v = load(i.ref) {name}" for name in names),
            f"p = alu({', '.join(f'{name}_v' for name in names)}) {function} {','.join('N->0' for _ in names)}",
            "Y_i = write(i.crd) Y.0",
            "Y_v = write(p) Y.vals",
        ]
    )


def tensors(tiles: tuple[TileShape, ...]) -> tuple[dict[str, Tensor], list[Array]]:
    """Small whole numbers, of which every order gives the same sums."""
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-9, 10, (COUNT, *tile)).astype(float) for tile in tiles]
    dense = Format.parse("dense", 1)
    places = np.arange(COUNT).reshape(-1, 1)
    packed = (from_coordinates((COUNT,), places, array.astype(np.float32), dense) for array in arrays)
    return dict(zip("AB", packed, strict=False)), arrays


def machine(units: int) -> Machine:
    return Machine(name="plain", arithmetic="f32", fifo_depth=2, latency={"default": 1, "add": 3, "mul": 2}, tile_macs=units)


def unit_counts(circuit: Circuit, node: str) -> Counter[str]:
    (unit,) = [unit for unit in circuit.units if unit.node.name == node]
    return Counter(expr.name for expr in expressions(netlist(unit.module).roots()) if expr.op == "call")


@pytest.mark.parametrize(("function", "tiles"), CASES)
def test_numpy_has_the_same_results(function: str, tiles: tuple[TileShape, ...]) -> None:
    graph = parse(computed(function, tiles))
    data, arrays = tensors(tiles)
    expected = FUNCTIONS[function](*arrays)
    for units in UNITS:
        run = cosimulate(graph, data, machine(units))
        assert run.difference is None, units
        assert run.simulation is not None
        result = run.simulation.outputs["Y"].to_dense()
        assert (result.reshape(expected.shape) == expected).all()


@pytest.mark.parametrize("units", UNITS)
def test_a_product_has_no_more_units_than_the_machine(units: int) -> None:
    """Of 64 multiplications each unit has as many as there are cycles."""
    circuit = build_circuit(parse(computed("matmul", ((4, 4), (4, 4)))), machine(units))
    cycles = -(-64 // units)
    counted = unit_counts(circuit, "p")
    assert counted == {"ff_f32_mul": -(-64 // cycles), "ff_f32_fold_sum": -(-64 // cycles)}
    assert max(counted.values()) <= units


REDUCED = """
tensor A[2, 3] csr f32 tile 2x3
tensor Y[3] dense f32 tile 2x3
tensor y[2] dense f32 tile 2x3
output Y, y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
acc = accumulate(A_i.crd, A_j.crd, A_v) sum order=1
most = reduce(A_v) max
Y_j = write(acc.crd) Y.0
Y_v = write(acc.val) Y.vals
y_i = write(A_i.crd) y.0
y_v = write(most) y.vals
"""


@pytest.mark.parametrize("units", UNITS)
def test_reductions_have_no_more_units_than_the_machine(units: int) -> None:
    circuit = build_circuit(parse(REDUCED), machine(units))
    for node, name in (("acc", "ff_f32_fold_sum"), ("most", "ff_f32_fold_max")):
        assert unit_counts(circuit, node)[name] == -(-6 // -(-6 // units)) <= units


@pytest.mark.parametrize("units", [1, 4, 16])
def test_verilog_does_the_same(units: int) -> None:
    require("pycde", "iverilog", "vvp")
    graph = parse(computed("matmul_t", ((2, 3), (4, 3))))
    data, arrays = tensors(((2, 3), (4, 3)))
    run = cosimulate(graph, data, machine(units), "icarus")
    assert run.difference is None and run.simulation is not None
    assert (run.simulation.outputs["Y"].to_dense() == arrays[0] @ arrays[1].swapaxes(1, 2)).all()


def from_the_last(row: Row) -> Row:
    """The items of every element of the result in the opposite order."""

    def work(arithmetic: Arithmetic, tiles: Sequence[TileShape]) -> TileWork:
        made = row(arithmetic, tiles)
        last = made.items // made.results - 1

        def backwards(w: int) -> int:
            return (last - w // made.results) * made.results + w % made.results

        return replace(made, reads=tuple(lambda w, read=read: read(backwards(w)) for read in made.reads))

    return work


@pytest.mark.parametrize("function", ["matmul", "matmul_t", "row_sum", "col_sum", "row_prod"])
def test_sums_are_added_up_in_the_order_of_the_simulators(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of numbers that are rounded the bits are the same, whatever the number of units, and others from the last item on."""
    tiles = ((5, 5),) * (2 if function.startswith("mat") else 1)
    graph, rng = parse(computed(function, tiles)), np.random.default_rng(1)
    values = [rng.normal(size=(COUNT, *tile)).astype(np.float32) for tile in tiles]
    places, dense = np.arange(COUNT).reshape(-1, 1), Format.parse("dense", 1)
    data = {name: from_coordinates((COUNT,), places, value, dense) for name, value in zip("AB", values, strict=False)}
    for units in UNITS:
        assert cosimulate(graph, data, machine(units)).difference is None
    monkeypatch.setitem(TILE_WORK, function, from_the_last(TILE_WORK[function]))  # type: ignore[arg-type]
    for units in UNITS:
        assert "token 0 of `p`" in str(cosimulate(graph, data, machine(units)).difference)
