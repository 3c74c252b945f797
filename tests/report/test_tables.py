"""Tables: every operator has its row, and the check says what it left out."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.report.table_width import print_table
from fuseflow.report.tables import (
    CheckRow,
    check_line,
    check_table,
    cycle_shares,
    lane_lines,
    operator_table,
    plain_table,
    reducer_table,
    result_table,
    top_tables,
)
from fuseflow.resources import Resources
from fuseflow.run.check import Check, Difference
from fuseflow.run.result import RegionResult, Result, Seconds, region_json
from fuseflow.run.settings import Settings
from fuseflow.samml.nodes import Graph
from fuseflow.sim import EdgeStatistics, Machine, NodeStatistics, Simulation, Traffic


def printed(table: Table, width: int = 160) -> str:
    out = io.StringIO()
    print_table(Console(file=out, width=width), table)
    return out.getvalue()


def first_words(table: Table) -> list[str]:
    return [line.split()[0] for line in printed(table).splitlines()[2:] if line[:1].strip()]


def test_operators_and_reductions() -> None:
    assert first_words(operator_table()) == list(OPERATORS)
    assert first_words(reducer_table()) == list(REDUCERS)
    rows = {line.split()[0]: line for line in printed(operator_table()).splitlines()}
    assert "0 * _ = 0" in rows["mul"]
    assert "pow(_, 0) = 1" in rows["pow"]
    assert "where(a, b, c)" in rows["where"]
    assert "-0" not in rows["neg"]


def test_a_terminal_of_80_columns_holds_the_operators() -> None:
    assert max(map(len, printed(operator_table(), 80).splitlines())) <= 80


@pytest.mark.parametrize("width", [160, 74, 30, 1])
def test_a_narrow_terminal_cuts_neither_names_nor_numbers(width: int) -> None:
    columns = ("name", "one\ncolumn", "another\ncolumn", "third")
    table = plain_table(*columns, numbers_from=1)
    table.add_row("transformer.layer2.matmul", *(f"{n:,}" for n in (10**9, 123456, 78)))
    parts = [line.split() for line in printed(table, width).splitlines() if line.startswith("transformer")]
    assert {name for name, *_ in parts} == {"transformer.layer2.matmul"}
    assert [number for _, *numbers in parts for number in numbers] == ["1,000,000,000", "123,456", "78"]


def test_checks() -> None:
    text = printed(check_table([CheckRow("torch", False, "not installed [yet]"), CheckRow("numpy", True, "2")]))
    assert text.splitlines()[2].split() == ["torch", "wrong", "not", "installed", "[yet]"]


def result(check: Check | None) -> Result:
    return Result(Settings("m", None, "", Machine(name="ideal"), "reference", 0), {}, (), check, Seconds(0, 0, 0))


@pytest.mark.parametrize(
    ("check", "what"),
    [
        (None, "switched off"),
        (Check("PyTorch", True, 1e-7, 3), "passed[/], largest relative error 1e-07, 3 fully masked rows left out"),
        (Check("PyTorch", False, float("inf")), "FAILED"),
        (
            Check("PyTorch", True, 1e-7, elements=12, not_compared=3, uncertain=Difference((2, 0), 1.5, 0.5)),
            "3 of 12 elements could not be compared (terms cancel: at (2, 0) it is 1.5, not 0.5)",
        ),
        (Check("PyTorch", False, 0.0, elements=3, not_compared=3, unknown="y"), "[red]UNKNOWN[/]"),
    ],
)
def test_the_check_in_one_line(check: Check | None, what: str) -> None:
    assert what in check_line(check)


def test_a_program_without_regions_has_a_total() -> None:
    assert printed(result_table(result(None))).splitlines()[-2].split() == ["total", *["0"] * 9]


def region(name: str, *nodes: tuple[Any, ...]) -> RegionResult:
    """A region of 40 cycles whose nodes were (name) busy, starved, blocked and, if at all, waiting for memory so long."""
    found = tuple(
        NodeStatistics(node, "alu", busy, starved, blocked, 0, 39, *waited, occupied=busy)
        for node, busy, starved, blocked, *waited in nodes
    )
    edges = (EdgeStatistics("a", 0, 5, 2),)
    traffic = (Traffic("A", "crd", "read", 3, 12),)
    return RegionResult(
        name, ("e",), Simulation({}, 40, 5, {"add": 6}, traffic, found, edges), Resources(), Graph(name, (), (), ())
    )


def test_the_busiest_and_the_most_blocked_nodes() -> None:
    first = region("first", ("a", 10, 20, 4), ("b[0]", 30, 0, 10), ("c", 30, 5, 0, 2), ("d", 1, 2, 3))
    second = region("second", ("a", 40, 0, 0))
    both = replace(result(None), regions=(first, second))
    busiest, blocked = ([line.split() for line in printed(table).splitlines()[3:]] for table in top_tables(both, 2))
    assert busiest == [
        ["first", "b[0]", "alu", "75.0", "0.0", "0.0", "25.0"],  # as busy as c, but before it
        ["c", "alu", "75.0", "12.5", "5.0", "0.0"],
        ["second", "a", "alu", "100.0", "0.0", "0.0", "0.0"],
    ]
    assert blocked == [
        ["first", "b[0]", "alu", "75.0", "0.0", "0.0", "25.0"],
        ["a", "alu", "25.0", "50.0", "0.0", "10.0"],
        ["second", "none"],
    ]


def test_statistics_as_plain_values() -> None:
    assert region_json(region("r", ("a", 10, 20, 4)))["statistics"] == {
        "nodes": [
            {
                "name": "a",
                "op": "alu",
                "firings": 10,
                "starved": 20,
                "blocked": 4,
                "first": 0,
                "last": 39,
                "waited": 0,
                "occupied": 10,
            }
        ],
        "edges": [{"node": "a", "input": 0, "tokens": 5, "peak": 2}],
        "lanes": {},
        "flops": {"add": 6},
        "traffic": [{"tensor": "A", "kind": "crd", "direction": "read", "words": 3, "bytes": 12}],
        "memory": None,
    }


@pytest.mark.parametrize(("firings", "spread"), [((10, 30), "1.50"), ((6, 7), "1.08"), ((0, 0), "1.00")])
def test_lanes_in_one_line_for_each_index(firings: tuple[int, int], spread: str) -> None:
    places = {"a": (("i", 0),), "b": (("i", 1),)}
    dealt = replace(region("first", ("a", firings[0], 0, 0), ("b", firings[1], 0, 0)), places=places)
    assert list(lane_lines(replace(result(None), regions=(dealt, region("second", ("a", 1, 0, 0)))))) == [
        f"first: 2 lanes of i, {firings[0]} to {firings[1]} firings each, the most {spread} times the mean"
    ]


def test_no_share_of_a_node_with_two_processes_is_above_100() -> None:
    """An accumulator fills one workspace while it empties another; each of the two fires in nearly every cycle."""
    node = NodeStatistics("acc", "acc", 78, 1, 1, 0, 39, occupied=39, workspace=4)
    assert node.processes == 2
    assert list(cycle_shares(node, 40)) == ["97.5", "1.2", "0.0", "1.2"]
