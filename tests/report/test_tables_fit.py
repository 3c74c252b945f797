"""Every table of every command fits a terminal of 80 columns, and output that goes to no terminal. `--wide` shows what was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.table import Table

from fuseflow.cli.main import main
from fuseflow.cli.sanitized_console import SafeConsole
from fuseflow.report.table_width import head_text, natural_width

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "example"
GCN = (str(ROOT / "models" / "gcn.py"), "--fuse", "layer1")
SPMM = (str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml"))
COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "run": (("run", *GCN, "--memory", "--energy", "--top", "3", "--resources"), 8),
    "run of one step": (("run", *GCN[:1], "--small", "--train"), 2),
    "run with propagation": (("run", *GCN, "--propagate"), 1),
    "run of a sample": (("run", *GCN, "--sample", "50%"), 1),
    "run on an array": (("run", *SPMM, "--array", "onyx", "--resources"), 3),
    "run that chooses": (("run", *GCN[:1], "--small", "--fuse", "auto"), 2),
    "estimate": (("estimate", *GCN, "--resources", "--by", "operator", "--by", "tensor"), 4),
    "compile": (("compile", *GCN, "-o", "OUT"), 1),
    "schedule": (("schedule", *GCN[:1], "--small", "--budget", "mul=16,add=64", "--top", "0"), 4),
    "explain order": (("explain", "order", *GCN), 8),
    "explain fusion": (("explain", "fusion", *GCN), 3),
    "explain cycles": (("explain", "cycles", *GCN), 15),
    "place": (("place", *SPMM, "--array", "onyx", "--seeds", "1", "--effort", "1"), 1),
    "area": (("area", *SPMM, "--machine", "rtl"), 1),
    "cosimulate": (("cosimulate", *SPMM), 1),
    "machines": (("machines",), 1),
    "ops": (("ops",), 2),
    "propagate": (("propagate", *GCN[:1]), 1),
    "sparsify": (("sparsify", str(ROOT / "models" / "sparse_mlp.py")), 1),
}
"""Commands by a name, each with the tables that it prints at least."""


def tables(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], out: Path) -> list[tuple[SafeConsole, Table]]:
    """Run a command, and return the tables that it printed, each with its console."""
    seen = list[tuple[SafeConsole, Table]]()
    whole = SafeConsole.print

    def noting(self: SafeConsole, *objects: Any, **settings: Any) -> None:
        seen.extend((self, each) for each in objects if isinstance(each, Table))
        whole(self, *objects, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(SafeConsole, "print", noting)
        result = CliRunner().invoke(main, [str(out) if word == "OUT" else word for word in words])
    assert result.exit_code == 0, result.output
    return seen


@pytest.mark.parametrize("name", COMMANDS)
def test_tables_fit_80_columns_and_wide_has_all(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words, least = COMMANDS[name]
    monkeypatch.chdir(tmp_path)
    narrow = tables(monkeypatch, words, tmp_path / "narrow")
    assert len(narrow) >= least
    assert [head_text(table.columns[0]) for console, table in narrow if natural_width(console, table) > 80] == []
    assert all(console.width == 80 for console, _ in narrow)
    wide = tables(monkeypatch, (*words, "--wide"), tmp_path / "wide")
    assert len(wide) == len(narrow), "a table is shown in one piece"
    for (_, few), (_, all_of_it) in zip(narrow, wide, strict=True):
        heads = [head_text(column) for column in all_of_it.columns]
        assert {head_text(column) for column in few.columns} <= set(heads) and few.columns[0].header == all_of_it.columns[
            0
        ].header
