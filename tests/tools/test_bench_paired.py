"""Two trees by turns: what is compared of their runs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

BENCH = Path(__file__).parents[2] / "tools" / "bench"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("paired")


def test_each_tree_runs_its_own_packages(tool: Any, tmp_path: Path) -> None:
    (tmp_path / "fuseflow").mkdir()
    (tmp_path / "fuseflow" / "__init__.py").write_text("SIZE = 8")
    command = ["python", "-c", "import fuseflow; print('{\"size\":', getattr(fuseflow, 'SIZE', 2), '}')"]
    result = CliRunner().invoke(tool.main, ["--base", str(tmp_path), "--rounds", "1", "--", *command])
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("size"))
    assert line.split()[1:] == ["base", "8.0000", "here", "2.0000", "ratio", "0.250"]
    assert "processor seconds" in result.output


def test_a_command_that_fails_is_an_error(tool: Any, tmp_path: Path) -> None:
    fails = ["--base", str(tmp_path), "--rounds", "1", "--", "python", "-c", "raise SystemExit(3)"]
    result = CliRunner().invoke(tool.main, fails)
    assert result.exit_code == 1 and "exit status 3" in result.output
    assert CliRunner().invoke(tool.main, ["--allow", "3", *fails]).exit_code == 0


def test_figures_are_compared_by_round(tool: Any) -> None:
    base = [{"a": 1.0, "same": 2.0}, {"a": 10.0, "same": 2.0}, {"a": 4.0, "same": 2.0}]
    here = [{"a": 2.0, "same": 2.0}, {"a": 10.0, "same": 2.0}, {"a": 12.0, "same": 2.0}]
    (compared,) = tool.comparisons(base, here)
    assert (compared.name, compared.base, compared.here, compared.ratio) == ("a", 4.0, 10.0, 2.0)
    nested = {"cases": [{"name": "dense", "seconds": 2}, 7], "ok": True}
    assert dict(tool.numbers(nested)) == {"cases.dense.seconds": 2.0, "cases.1": 7.0}
