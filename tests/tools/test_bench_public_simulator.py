"""The benchmark beside the public simulator. A small program stands for that simulator here."""

from __future__ import annotations

import importlib
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

BENCH = Path(__file__).parents[2] / "tools" / "bench"
STANDS_IN = """#!{python}
import pathlib, sys
words = sys.argv[1:]
graph, folder = (pathlib.Path(words[words.index(word) + 1]) for word in ("--proto", "--data"))
assert graph.read_bytes() and len(list(folder.glob("tensor_*_mode_vals"))) == 2 and "--breakdowns" in words
sum(range(1_000_000))
print("Parse Time: 1µs", "Initialization Time: 0.5ms", "Execution Time: 9s", "Elapsed Cycles: {cycles}", sep=chr(10))
"""


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("public_simulator")


def run(tool: Any, *words: str) -> Any:
    return CliRunner().invoke(tool.main, ["--scale", "0.08", "--rounds", "1", *words])


def stands_in(folder: Path, cycles: int) -> str:
    """Return the path of a program that takes some time and says that a graph takes these cycles."""
    path = folder / "comal"
    path.write_text(STANDS_IN.format(python=sys.executable, cycles=cycles), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_without_comal_it_says_what_it_skips(tool: Any) -> None:
    result = run(tool)
    assert result.exit_code == 0, result.output
    assert result.output.count("skipped: Comal") == len(tool.ROWS)


def test_equal_cycles(tool: Any, tmp_path: Path) -> None:
    found = tool.measure("elemadd", 82, 1, Path(stands_in(tmp_path, 1)))
    result = run(tool, "--case", "elemadd", "--comal", stands_in(tmp_path, found["cycles"]))
    assert result.exit_code == 0 and " times" in result.output, result.output
    assert found["ratio"] == found["comal_seconds"] / found["seconds"] > 0


def test_other_cycles_end_with_1(tool: Any, tmp_path: Path) -> None:
    result = run(tool, "--case", "spmm_ijk", "--comal", stands_in(tmp_path, 7))
    assert result.exit_code == 1 and "spmm_ijk: Comal takes 7 cycles, not " in result.output
