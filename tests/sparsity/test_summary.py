"""The rows that say what is sparse in a model."""

import json

import pytest
import torch
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.sparsity.summary import SummaryRow, intermediate_rows, stored_bytes, weight_rows

WEIGHT = torch.tensor([[4.0, 0.0, 3.0, -1.0], [0.5, -2.0, 0.25, 0.25], [5.0, 0, 0, 0]])
X = torch.tensor([[1.0, -1.0, 0.0, 2.0], [0.0, 3.0, 1.0, -2.0]])


def model():
    made = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    with torch.no_grad():
        made[0].weight.copy_(WEIGHT)
        made[0].bias.zero_()
    return made


def pruned(sparsifier, **rest):
    builder = sp.SparsityBuilder()
    builder.set_weight("0.weight", sparsifier, **rest)
    return builder.get_sparse_model(model())


def test_a_weight_has_a_row_with_what_is_kept_of_it():
    sparse = pruned(sp.Magnitude(0.75), inline_sparsifier=sp.Threshold(1.0), out_format=sp.CSR)
    (row,) = weight_rows(dict(model().named_parameters()), sparse)
    rule = "magnitude:0.75, then threshold:1.0"
    assert row == SummaryRow("0.weight", "weight", (3, 4), rule, "csr", 3, 12, row.energy, 48, 4 * 4 + 3 * 4 + 3 * 4)
    assert row.energy == pytest.approx(12 / 16)


def test_a_rule_has_all_its_sparsifiers_in_turn():
    rest = {"inline_sparsifier": sp.Threshold(1.0), "external_sparsifier": sp.TopK(1, dim=1)}
    (row,) = weight_rows({}, pruned(sp.Magnitude(0.5), **rest))
    assert row.rule == f"magnitude:0.5, then threshold:1.0, then {sp.TopK(1, dim=1)}" and row.kept == 3
    (row,) = weight_rows({}, pruned(sp.KeepAll(), **rest))
    assert row.rule.startswith("keepall, then threshold:1.0")


def test_the_energy_is_unknown_where_the_dense_weight_is():
    (row,) = weight_rows({}, pruned(sp.Magnitude(0.75)))
    assert row.energy is None and row.kept == 3


def test_a_row_is_plain_values():
    (row,) = weight_rows({"0.weight": WEIGHT}, pruned(sp.NM(2, 4), out_format=sp.NMLayout))
    values = row.to_json()
    assert json.loads(json.dumps(values)) == values and values["shape"] == [3, 4] and values["layout"] == "nm:2:4"
    assert values["kept"] == 6


def test_weights_of_modules_inside_have_rows():
    outer = nn.Sequential(pruned(sp.Magnitude(0.5)), nn.ReLU())
    assert [row.name for row in weight_rows({}, outer)] == ["0.0.weight"]


MASK = torch.tensor([[True, False, True, False], [False, True, False, False], [False, False, False, False]])


@pytest.mark.parametrize(
    ("layout", "bytes_stored"),
    [
        (sp.Dense(), 48),
        (sp.Masked(), 48),
        (sp.COO(), 3 * 4 + 2 * 3 * 4 + 2 * 4),
        (sp.CSR(), 3 * 4 + 3 * 4 + 4 * 4),
        (sp.CSC(), 3 * 4 + 3 * 4 + 5 * 4),
        (sp.BCSR((3, 2)), 2 * 6 * 4 + 2 * 4 + 2 * 4),
    ],
    ids=str,
)
def test_bytes_are_those_of_values_coordinates_and_positions(layout, bytes_stored):
    assert stored_bytes(WEIGHT, MASK, layout) == bytes_stored
    assert stored_bytes(WEIGHT.double(), MASK, layout) - bytes_stored in (48, 12, 2 * 6 * 4)


@pytest.mark.parametrize("layout", [sp.ELL(), sp.NMLayout(2, 4), sp.NMLayout(2, 4, dim=0)], ids=str)
def test_every_layout_has_bytes(layout):
    assert 3 * 4 <= stored_bytes(WEIGHT, MASK, layout) < 200
    assert stored_bytes(WEIGHT, torch.zeros_like(MASK), layout) >= 0


def test_a_weight_of_bfloat16_has_half_the_bytes():
    sparse = pruned(sp.Magnitude(0.75), out_format=sp.CSR).bfloat16()
    (row,) = weight_rows({"0.weight": WEIGHT.bfloat16()}, sparse)
    assert row.bytes_before == 24 and row.bytes_after == 4 * 4 + 3 * 4 + 3 * 2 and row.energy == pytest.approx(12 / 16)


def test_an_intermediate_has_a_row_with_what_one_run_left_of_it():
    builder = sp.SparsityBuilder()
    builder.set_interm("0", inline_sparsifier=sp.Threshold(3.0), external_sparsifier=sp.TopK(1, dim=1), out_format=sp.COO)
    builder.set_interm("1.*")
    builder.set_interm_grad("1", inline_sparsifier=sp.Magnitude(0.5))
    sparse = builder.get_sparse_model(model())
    hooks = len(sparse._forward_hooks)
    rows = intermediate_rows(sparse, (X,), {})
    assert [row.name for row in rows] == ["0", "1.relu", "1"]
    rule = "threshold:3.0 then topk:1:dim=1"
    assert rows[0] == SummaryRow("0", "intermediate", (2, 3), rows[0].rule, "coo", 2, 6, None, None, None)
    assert rows[0].rule.startswith(rule[:19]) and rows[1].rule == "keepall" and rows[1].layout == "dense"
    assert len(sparse._forward_hooks) == hooks and rows == intermediate_rows(sparse, (), {"input": X})


def test_every_tensor_of_a_pattern_has_a_row_and_nothing_else():
    builder = sp.SparsityBuilder()
    builder.set_interm("*", inline_sparsifier=sp.Threshold(1.0), external_sparsifier=sp.RandomFraction(0.5, seed=1))
    sparse = builder.get_sparse_model(model())
    assert tuple(row.name for row in intermediate_rows(sparse, (X,), {})) == sp.names(model(), X).intermediates


def test_a_model_without_rules_of_intermediates_is_not_run():
    assert intermediate_rows(model(), ("no tensor",), {}) == intermediate_rows(pruned(sp.Magnitude(0.5)), (), {}) == []


def test_a_rule_without_a_tensor_is_named_and_no_hooks_stay():
    builder = sp.SparsityBuilder()
    builder.set_interm("2", inline_sparsifier=sp.Threshold(1.0))
    sparse = builder.get_sparse_model(model())
    hooks = [len(m._forward_hooks) for m in sparse.modules()]
    with pytest.raises(SparsityError, match="no intermediate called `2`"):
        intermediate_rows(sparse, (X,), {})
    assert [len(m._forward_hooks) for m in sparse.modules()] == hooks
