"""The tables of models of others in docs/measured/models.md: that they are those of the rows, and what must hold in them."""

from __future__ import annotations

import json

import message_passing
import pytest
import real_model_point
import real_models
from claims import between_marks
from click import ClickException
from click.testing import CliRunner
from real_model_list import MODELS
from store import load

PAGE = real_models.PAGE.read_text(encoding="utf-8")
ROWS = load(real_models.STORE, real_models.Row)


def test_the_page_shows_the_rows() -> None:
    assert between_marks(PAGE, "real models", "real_models", real_models.table(ROWS)) == PAGE, "evaluation/real_models.py --write"


def test_nothing_is_wrong_and_every_import_is_fast() -> None:
    assert real_models.broken(ROWS.values()) == []
    assert {f"{model.name}/import" for model in MODELS} <= ROWS.keys()


def test_what_breaks_a_table() -> None:
    late = real_models.Row("bert/import", "done", 9.0, 1, {"import_seconds": 5.1})
    wrong = real_models.Row("bert/none", "wrong", 9.0, 1)
    assert real_models.broken([late, wrong]) == ["bert/import", "bert/none"]


def test_a_point_is_run() -> None:
    row = real_models.run(real_models.Point("dlrm", "layerwise"), 120)
    assert row.state == "done" and row.values["cycles"] > 0
    assert row.cycles == ROWS[row.key].cycles


def test_a_process_measures_the_import() -> None:
    measured = CliRunner().invoke(real_model_point.main, ["dlrm", "import"])
    assert measured.exit_code == 0 and json.loads(measured.stdout)["import_seconds"] > 0


def test_a_table_of_some_rows_says_what_is_missing() -> None:
    some = {key: row for key, row in ROWS.items() if not key.startswith("dlrm/a")}
    assert "not run: auto" in real_models.table(some)


def test_a_page_without_marks() -> None:
    with pytest.raises(ClickException, match="no marks of real models"):
        between_marks("# Models\n", "real models", "real_models", "")


def test_a_convolution_moves_as_much_for_an_edge_index_as_for_a_matrix() -> None:
    pytest.importorskip("torch_geometric")
    table = PAGE.partition("<!-- message passing:")[2].partition("<!-- end of message passing -->")[0]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")][2:]
    assert len(lines) == 2 * len(message_passing.convolutions())
    for name, fuse, _, cycles, same_cycles, moved, same_moved, _, per_edge, _ in lines:
        assert cycles == same_cycles and moved == same_moved
        assert per_edge == "0" or (fuse == "none" and name.startswith("GAT"))


def test_the_table_of_convolutions_is_made() -> None:
    pytest.importorskip("torch_geometric")
    import torch

    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    made = message_passing.table(torch.eye(6), edges)
    assert made.count("\n") == 2 + 2 * len(message_passing.convolutions())
