"""The units of 32-bit arithmetic: circuits give the bits that the simulators compute. `tools/float32_bars.py` measures them on millions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import float_units as fu
import numpy as np
import pytest


def operands() -> tuple[fu.Words, fu.Words, fu.Words]:
    """Random ones, and pairs of words at which something changes."""
    rng = np.random.default_rng(3)
    a, b, c = fu.random_words(rng, 300)
    edges = fu.edge_words(1000)
    x, y, z = (rng.choice(edges, 500) for _ in range(3))
    return np.concatenate([a, x]), np.concatenate([b, y]), np.concatenate([c, z])


def test_every_operator_has_a_unit() -> None:
    assert [name for name in fu.UNITS if not (fu.FOLDER / f"ff_f32_{name}.sv").is_file()] == []


def test_units_in_icarus_equal_the_simulators_and_numpy(tmp_path: Path) -> None:
    fu.require("iverilog", "vvp")
    a, b, c = operands()
    results = fu.in_icarus(fu.UNITS, tmp_path, a, b, c)
    for name in fu.UNITS:
        np.testing.assert_array_equal(results[name], fu.by_simulator(name, a, b, c), name)
    for name in fu.ROUNDED:
        np.testing.assert_array_equal(results[name], fu.by_numpy(name, a, b), name)


def test_verilator_has_nothing_to_say_of_any_unit(tmp_path: Path) -> None:
    fu.require("verilator")
    (tmp_path / "top.sv").write_text(fu.top(fu.UNITS))
    command = ["verilator", "--lint-only", "-Wall", "-Wno-DECLFILENAME", "--top-module", "top", "-y", str(fu.FOLDER), "top.sv"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, [line for line in found.stderr.splitlines() if line.startswith("%") and "'c'" not in line]) == (
        0,
        [],
    )


@pytest.mark.parametrize("name", ["max", "relu", "saturate"])
def test_yosys_makes_gates_of_a_unit(name: str) -> None:
    """Without a latch and without a loop. The larger ones take minutes: `tools/float32_bars.py --yosys` takes all."""
    fu.require("yosys")
    made, cells = fu.synthesized(name)
    assert made and "latch" not in cells.lower(), cells
