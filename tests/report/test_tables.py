"""Tables: every operator has its row, and the check says what it left out."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from fuseflow.compiler import Check, Result
from fuseflow.compiler.result import Seconds
from fuseflow.compiler.settings import Settings
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.report.tables import CheckRow, check_line, check_table, operator_table, reducer_table, result_table


def printed(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(table)
    return out.getvalue()


def first_words(table: Table) -> list[str]:
    return [line.split()[0] for line in printed(table).splitlines()[2:] if line.strip()]


def test_operators_and_reductions() -> None:
    assert first_words(operator_table()) == list(OPERATORS)
    assert first_words(reducer_table()) == list(REDUCERS)
    rows = {line.split()[0]: line for line in printed(operator_table()).splitlines()}
    assert "mul(0, _) = 0, mul(_, 0) = 0" in rows["mul"]
    assert "where(a, b, c)" in rows["where"]
    assert "-0" not in rows["neg"]


def test_checks() -> None:
    text = printed(check_table([CheckRow("torch", False, "not installed [yet]"), CheckRow("numpy", True, "2")]))
    assert text.splitlines()[2].split() == ["torch", "wrong", "not", "installed", "[yet]"]


def result(check: Check | None) -> Result:
    return Result(Settings("m", None, "", "ideal", "reference", 0), {}, (), check, Seconds(0, 0, 0))


@pytest.mark.parametrize(
    ("check", "what"),
    [
        (None, "switched off"),
        (Check("PyTorch", True, 1e-7, 3), "passed[/], largest relative error 1e-07, 3 fully masked rows left out"),
        (Check("PyTorch", False, float("inf")), "FAILED"),
    ],
)
def test_the_check_in_one_line(check: Check | None, what: str) -> None:
    assert what in check_line(result(check))


def test_a_program_without_regions_has_a_total() -> None:
    assert printed(result_table(result(None))).split()[-9:] == ["total", *["0"] * 8]
