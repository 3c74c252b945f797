"""The units of 32-bit arithmetic: circuits give the bits that the simulators compute."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import float_units as fu
import numpy as np
import pytest
from hardware_tools import require

from fuseflow.ops import OPERATORS


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
    require("iverilog", "vvp")
    a, b, c = operands()
    results = fu.in_icarus(fu.UNITS, tmp_path, a, b, c)
    for name in fu.UNITS:
        np.testing.assert_array_equal(results[name], fu.by_simulator(name, a, b, c), name)
    for name in fu.ROUNDED:
        np.testing.assert_array_equal(results[name], fu.by_numpy(name, a, b), name)


def test_verilator_has_nothing_to_say_of_any_unit(tmp_path: Path) -> None:
    require("verilator")
    (tmp_path / "top.sv").write_text(fu.top(fu.UNITS))
    command = ["verilator", "--lint-only", "-Wall", "-Wno-DECLFILENAME", "--top-module", "top", "-y", str(fu.FOLDER), "top.sv"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, [line for line in found.stderr.splitlines() if line.startswith("%") and "'c'" not in line]) == (
        0,
        [],
    )


SMALL = ("max", "relu", "saturate")


@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in fu.UNITS if name not in SMALL)]
)
def test_yosys_makes_gates_of_a_unit(name: str) -> None:
    """Without a latch and without a loop. The larger ones take minutes."""
    require("yosys")
    made, cells = fu.synthesized(name)
    assert made and "latch" not in cells.lower(), cells


CHUNK = 500_000


@pytest.mark.slow
@pytest.mark.parametrize("name", fu.UNITS)
def test_units_in_verilator_equal_the_simulators_and_numpy(name: str, draws: Callable[[int], range], tmp_path: Path) -> None:
    """On chunks of random words, and on all pairs of edge values."""
    require("verilator")
    unit, edges = fu.Units([name], tmp_path), fu.edge_words(2000)
    pairs = [np.meshgrid(rows, edges, indexing="ij") for rows in np.array_split(edges, 8)]
    chunks = [fu.random_words(np.random.default_rng(seed), CHUNK) for seed in draws(20)]
    for a, b, c in chunks + [(a.ravel(), b.ravel(), np.random.default_rng(0).permutation(b.ravel())) for a, b in pairs]:
        given = unit(a, b, c)[name]
        np.testing.assert_array_equal(given, fu.by_simulator(name, a, b, c))
        if name in fu.ROUNDED:
            np.testing.assert_array_equal(given, fu.by_numpy(name, a, b))


@pytest.mark.slow
@pytest.mark.parametrize("name", fu.WITHIN_1_ULP)
def test_functions_in_verilator_are_within_1_ulp(name: str, draws: Callable[[int], range], tmp_path: Path) -> None:
    """Of mpmath."""
    require("verilator")
    unit = fu.Units([name], tmp_path)
    for seed in draws(2):
        a, b = fu.function_words(name, np.random.default_rng(seed), CHUNK)
        given = unit(a, b, b)[name]
        np.testing.assert_array_equal(given, fu.by_simulator(name, a, b, b))
        columns = [fu.floats(words).astype(float).tolist() for words in (*(a, b)[: OPERATORS[name].arity], given)]
        assert max(fu.ulps(name, operands, result) for *operands, result in zip(*columns, strict=True)) < 1
