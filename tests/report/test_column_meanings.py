"""Every column of every table on a terminal has a meaning, and `--legend` prints it below the tables, whatever the terminal is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from terminal import plain, shown

import fuseflow
from fuseflow.cli.main import main
from fuseflow.report.column_meanings import COLUMN_MEANINGS, column_meaning
from fuseflow.report.sweep_table import CLOCKED, ESTIMATED, SAMPLED, SIMULATED

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
SPMM = ["run", str(EXAMPLE / "spmm.ein"), "--tensors", str(EXAMPLE / "tensors.yaml")]
NAMES = {"bounds", "columns", "ran", "CONFIG_COLUMNS", "LOADING_COLUMNS", "HEADINGS", "ENERGY_HEADINGS"}
"""Names of tuples and lists of heads, which tables take as a whole."""


def heads() -> Iterator[str]:
    """The heads of the tables in the source: the texts that `plain_table` is given, and those of named lists of heads."""
    for file in sorted((Path(fuseflow.__file__).parent / "report").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("plain_table", "_top_table", "_auto_table"):
                yield from _texts(*node.args)
            elif isinstance(node, ast.Assign) and {getattr(t, "id", "") for t in node.targets} & NAMES:
                yield from _texts(node.value)


def _texts(*nodes: ast.AST) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif not isinstance(node, ast.Call):
            yield from _texts(*ast.iter_child_nodes(node))


def test_every_column_has_a_meaning():
    known = sorted(set(heads()))
    assert len(known) > 100
    assert [head for head in known if column_meaning(head) is None] == []
    sweeps = (
        *(f"estimated_{name}" for name in ESTIMATED),
        *SIMULATED,
        *SAMPLED,
        *CLOCKED,
        "status",
        "to_best",
        "reason",
        "error",
    )
    assert [name for name in sweeps if column_meaning(name.replace("_", " ")) is None] == []


def test_no_meaning_is_of_a_column_that_no_table_has():
    known = {" ".join(head.split()) for head in heads()}
    assert sorted(set(COLUMN_MEANINGS) - known - {"to best", "in blocks of"}) == []


def test_the_legend_stands_below_all_tables_and_once(monkeypatch):
    result = CliRunner().invoke(main, [*SPMM, "--legend", "--top", "2", "--memory", "--resources"])
    assert result.exit_code == 0
    legend = result.stdout.partition("\ncolumns\n")[2]
    assert "row hits %" in legend and "starved %" in legend and "stream units" in legend
    names = [re.split(r"\s{2,}", line)[0] for line in legend.splitlines() if line[:1].strip()]
    assert len(names) == len(set(names))
    assert "columns" not in CliRunner().invoke(main, SPMM).stdout
    assert "columns" not in CliRunner().invoke(main, [*SPMM, "--legend", "--quiet"]).stdout


@pytest.mark.parametrize("columns", [20, 45, 80])
def test_tables_and_legends_fit_into_a_terminal(columns: int):
    text = shown(columns, *SPMM, "--legend")
    lines = plain(text).splitlines()
    numbers, _, legend = "\n".join(lines).partition("\ncolumns\n")
    notes = ("check", "roofline: ", "no room")
    assert "203" in numbers and ("tokens" in numbers or columns == 20)
    assert all(len(line) <= columns for line in numbers.splitlines() if not line.startswith(notes))
    assert all(len(line) <= columns for line in legend.splitlines())
    words = " ".join(legend.split())
    assert "clock cycles of the machine" in words


def test_no_colour_is_none():
    assert "\x1b" in shown(80, *SPMM)
    assert "\x1b" not in shown(80, *SPMM, NO_COLOR="1").replace("\x1b[1m", "").replace("\x1b[0m", "")
