"""The engine in two trees by turns: which packages simulate, what is compared, and what is a failure."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
UNION = ["--case", "union", "--rounds", "1"]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "tools" / "bench")
    return importlib.import_module("paired_engine")


def other_tree(folder: Path, cycles: int, seconds: float) -> Path:
    """A tree whose simulations say these cycles and last so long."""
    bench = folder / "tools" / "bench"
    bench.mkdir(parents=True)
    (bench / "simulator_cases.py").write_text((ROOT / "tools" / "bench" / "simulator_cases.py").read_text())
    (bench / "simulator.py").write_text(
        "import time, types\n"
        "def machine_of(case, machine): return machine\n"
        "def simulate_problem(problem, machine):\n"
        "    end = time.process_time() + " + f"{seconds}\n"
        "    while time.process_time() < end: pass\n"
        f"    return types.SimpleNamespace(cycles={cycles})\n"
    )
    for path in ("fuseflow", "tools/bench/firings.py", "tools/bench/host.py"):
        (folder / path).symlink_to(ROOT / path)
    return folder


def test_each_tree_simulates_with_its_own_packages(tool: Any, tmp_path: Path) -> None:
    slow, fast = other_tree(tmp_path / "slow", 419_923, 1.0), other_tree(tmp_path / "fast", 419_923, 0.0)
    result = CliRunner().invoke(tool.main, ["--base", str(slow), *UNION])
    assert result.exit_code == 0 and "419,923 cycles" in result.output, result.output
    result = CliRunner().invoke(tool.main, ["--base", str(fast), *UNION])
    assert result.exit_code == 1 and "slower than 1.03 times the other tree: union" in result.output


def test_other_cycles_are_a_failure(tool: Any, tmp_path: Path) -> None:
    result = CliRunner().invoke(tool.main, ["--base", str(other_tree(tmp_path / "other", 7, 0.0)), *UNION])
    assert result.exit_code == 1 and "union has 7 cycles in" in result.output and "419,923 here" in result.output


def test_a_simulation_that_fails_is_an_error(tool: Any, tmp_path: Path) -> None:
    tree = other_tree(tmp_path / "broken", 7, 0.0)
    (tree / "tools" / "bench" / "simulator.py").write_text("raise SystemExit(3)")
    result = CliRunner().invoke(tool.main, ["--base", str(tree), *UNION])
    assert result.exit_code == 1 and "the simulation in" in result.output


def test_on_comal_no_case_names_the_depth_of_its_fifos(tool: Any) -> None:
    on_comal = tool.case_names(large=True, machine="comal")
    assert {"spmm_dense", "attention_4x4"} <= set(on_comal)
    assert {name for name in tool.case_names(large=True) if name not in on_comal} == {f"spmm_dense_depth{n}" for n in (64, 16, 4)}
