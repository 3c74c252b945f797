"""`fuseflow explain order` on the command line."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import ordered_linalg
import pytest
from click.testing import CliRunner, Result

from fuseflow.cli.main import main

PAPER = Path(__file__).parents[2] / "models" / "paper"


def explain(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["explain", "order", *map(str, arguments)])


@pytest.mark.parametrize(
    ("model", "reference", "merged"),
    [("gcn", (18, 63_063_000), (6, 1)), ("graphsage", (11, 1_134), (11, 1_134))],
)
def test_the_paper_s_table_of_orders(model: str, reference: tuple[int, int], merged: tuple[int, int]) -> None:
    result = explain(PAPER / f"{model}.py", "--small", "--fuse", "full", "--count", "reference", "--json", "-")
    assert result.exit_code == 0, result.output
    (region,) = json.loads(result.stdout)["regions"]
    for rule, (variables, orders) in {"reference": reference, "merged": merged}.items():
        found = region["counts"][rule]
        assert found == {
            "variables": variables,
            "unconstrained": math.factorial(variables),
            "constrained": orders,
            "exact": True,
        }


def test_text_goes_to_standard_error_beside_json() -> None:
    result = explain(PAPER / "gcn.py", "--small", "--json", "-")
    assert "region layer1" in result.stderr and json.loads(result.stdout)["model"] == "gcn"


def test_json_to_a_file(tmp_path: Path) -> None:
    assert explain(PAPER / "gcn.py", "--small", "--fuse", "layerwise", "--json", tmp_path / "o.json").exit_code == 0
    document = json.loads((tmp_path / "o.json").read_text())
    assert list(document) == ["schema", "model", "data", "schedule", "seed", "without_data", "regions"]
    assert [r["name"] for r in document["regions"]] == ["layer1", "layer2"] and document["regions"][0]["counts"] == {}


def test_it_prints_the_same_every_time() -> None:
    first, second = (explain(PAPER / "graphsage.py", "--small", "--fuse", "full", "--count", "merged").output for _ in range(2))
    assert first == second and "merged" in first and "reference" not in first


def test_an_unknown_rule_is_refused() -> None:
    result = explain(PAPER / "gcn.py", "--small", "--count", "all")
    assert result.exit_code == 2 and "reference" in result.stderr


def test_help_of_the_group() -> None:
    shown = CliRunner().invoke(main, ["explain", "--help"]).output
    assert "order" in shown and "fusion" in shown


@pytest.mark.parametrize("order", ["ikj", "ijk"])
def test_an_order_of_an_mlir_file_has_its_place(order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(ordered_linalg.two_products(order))
    result = explain("m.mlir", "--fuse", "none")
    assert result.exit_code == 0, result.output
    pairs = [f"{above} before {below}: asked for in m.mlir" for above, below in pairwise(order)]
    assert all(f"{pair}:{line}\n" in result.output for pair in pairs for line in (6, 12))
    assert result.output.count(f"order {','.join(order)}: the only one that the schedule leaves") == 2
    assert "note:" not in result.output
    other = explain("m.mlir", "--fuse", "none", "--order", "matmul=j,k,i")
    assert "note: region `matmul` runs in the order of the schedule, and not in that of m.mlir:6\n" in other.output


def test_orders_of_an_mlir_file_that_contradict_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(ordered_linalg.two_calls("kij"))
    result = explain("m.mlir")
    assert result.exit_code == 2 and "Traceback" not in result.output
    assert "m.mlir:6:" in result.stderr and "m.mlir:12" in result.stderr
