"""What a model knows of its sparsity, and weights that PyTorch stores sparse."""

import pytest
import torch
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.sparsity.model_sparsity import zero_pruned
from fuseflow.sparsity.spec import SparseSpec, WeightEntry
from fuseflow.sparsity.weights import dense_values, make_dense, replica, stored_entries

HALF = WeightEntry(sp.Magnitude(0.5))
LAYOUTS = {
    "coo": torch.Tensor.to_sparse,
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}
X = torch.tensor([[0.0, 0, 1, 2], [0, 0, 3, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def layers():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Sequential(nn.Linear(4, 4, bias=False)))
    return model


def test_sparse_weights_have_the_paths_of_the_modules_that_know_them():
    model = layers()
    sp.sparsify(model[1], SparseSpec((("0.weight", HALF),)))
    assert [(name, p) for name, p, _ in sp.sparse_weights(model[1])] == [("0.weight", model[1][0].weight)]
    sp.sparsify(model, SparseSpec((("0.weight", HALF),)))
    found = {name: (p, weight) for name, p, weight in sp.sparse_weights(model)}
    assert [*found] == ["0.weight", "1.0.weight"] and found["1.0.weight"][0] is model[1][0].weight
    assert found["1.0.weight"][1] is sp.sparsity_of(model[1]).weights["0.weight"]


def test_a_weight_that_was_taken_away_is_not_listed():
    model = layers()
    sp.sparsify(model, SparseSpec((("*", HALF),)))
    model[1] = nn.ReLU()
    assert [name for name, *_ in sp.sparse_weights(model)] == ["0.weight"]


def test_a_dense_model_knows_nothing():
    model = layers()
    model._fuseflow_sparsity = "of another program"
    assert sp.sparsity_of(model) is None and not [*sp.sparse_weights(model)]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), -1.0])
def test_what_is_pruned_is_zero_whatever_it_was(number):
    weight = nn.Parameter(torch.full((2, 2), number))
    zero_pruned(weight, torch.eye(2) > 0)
    assert weight[0, 1] == weight[1, 0] == 0 and weight[0, 0] != 0 and weight.grad_fn is None and weight.requires_grad
    assert not torch.signbit(weight[0, 1])


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_what_a_weight_stores_is_seen_in_every_layout(convert):
    stored = convert(X)
    block = torch.zeros(4, 4, dtype=torch.bool)
    block[:2, 2:] = True
    assert torch.equal(dense_values(stored), X)
    assert torch.equal(stored_entries(stored), block if stored.layout in (torch.sparse_bsr, torch.sparse_bsc) else X != 0)
    assert stored_entries(X).all()


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_a_replica_copies_weights_of_every_layout_and_keeps_ties(convert):
    model = layers()
    model[0].weight = model[1][0].weight = nn.Parameter(convert(X), requires_grad=False)
    twin = replica(model)
    assert twin[0].weight is twin[1][0].weight and twin[0].weight is not model[0].weight
    assert twin[0].weight.layout == model[0].weight.layout and not twin[0].weight.requires_grad
    twin[0].weight.values().zero_() if convert is not LAYOUTS["coo"] else twin[0].weight._values().zero_()
    assert torch.equal(model[0].weight.to_dense(), X)


@pytest.mark.parametrize("convert", LAYOUTS.values(), ids=LAYOUTS)
def test_a_replica_copies_buffers_and_attributes_of_every_layout(convert):
    model = layers()
    model.register_buffer("adjacency", convert(X))
    model[1].other = convert(2 * X)
    twin = replica(model)
    assert twin.adjacency is not model.adjacency and torch.equal(twin.adjacency.to_dense(), X)
    assert twin.adjacency.layout == model.adjacency.layout and torch.equal(twin[1].other.to_dense(), 2 * X)


def test_a_weight_becomes_dense_under_all_its_names():
    model = layers()
    model[0].weight = model[1][0].weight = nn.Parameter(X.to_sparse_csr())
    dense = make_dense(model, "0.weight")
    assert model[0].weight is model[1][0].weight is dense and torch.equal(dense, X) and dense.requires_grad
    assert make_dense(model, "0.weight") is dense
