"""Masks of weights: which parameter has which entry, and what an output format keeps of a tensor."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.sparsity.spec import OutputFormat, SparseSpec, WeightEntry
from fuseflow.sparsity.weights import output_mask, select_weights, weight_names

X = torch.tensor([[1.0, -4.0, 3.0, 2.0], [0.5, -0.25, 0.0, 8.0]])


def tied():
    model = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3, bias=False), "c": nn.Linear(3, 3)})
    model["c"].weight = model["a"].weight
    return model


def test_a_tied_weight_stands_under_its_first_name_with_all_of_them():
    names = {"a.weight": ("a.weight", "c.weight"), "a.bias": ("a.bias",), "b.weight": ("b.weight",), "c.bias": ("c.bias",)}
    assert weight_names(tied()) == names and weight_names(nn.ReLU()) == {}


@pytest.mark.parametrize(
    ("patterns", "fractions"),
    [
        ("*=1 a.*=0.5", {"a.weight": 0.5, "a.bias": 0.5, "b.weight": 1, "c.bias": 1}),
        ("a.*=0.5 *=1", {"a.weight": 1, "a.bias": 1, "b.weight": 1, "c.bias": 1}),
        ("a.weight=0.5 c.*=1", {"a.weight": 1, "c.bias": 1}),
        ("[ab].weight=1", {"a.weight": 1, "b.weight": 1}),
        ("?.bias=1", {"a.bias": 1, "c.bias": 1}),
    ],
)
def test_the_last_pattern_that_matches_a_weight_counts(patterns, fractions):
    entries = (text.split("=") for text in patterns.split())
    spec = SparseSpec(tuple((name, WeightEntry(sp.Magnitude(float(fraction)))) for name, fraction in entries))
    assert {name: weight.entry.sparsifier.fraction for name, weight in select_weights(tied(), spec).items()} == fractions


def test_selecting_changes_no_weight():
    model = tied()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    masks = select_weights(model, SparseSpec((("*", WeightEntry(sp.Magnitude(0.5))),)))
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert all(weight.mask.shape == before[name].shape and weight.mask.dtype == torch.bool for name, weight in masks.items())


def test_weights_are_compared_with_those_of_an_equal_rule_alone():
    model, everywhere = tied(), WeightEntry(sp.Magnitude(0.5, scope="model"))
    with torch.no_grad():
        for number, name in enumerate(("a", "b")):
            model[name].weight.fill_(number + 1.0)
        model["c"].bias.fill_(100)
    spec = SparseSpec((("*.weight", everywhere), ("c.bias", WeightEntry(sp.Magnitude(0.5)))))
    kept = {name: int(weight.mask.sum()) for name, weight in select_weights(model, spec).items()}
    assert kept == {"a.weight": 0, "b.weight": 9, "c.bias": 2}


def test_each_sparsifier_sees_what_the_one_before_it_kept():
    format = OutputFormat(inline=sp.Magnitude(0.5), external=sp.TopK(1, dim=1))
    assert output_mask(X, format, "x").tolist() == [[False, True, False, False], [False, False, False, True]]
    assert output_mask(X, OutputFormat(inline=sp.Magnitude(0.5)), "x").sum() == 4


def test_nothing_comes_back_that_a_mask_left_out():
    within = torch.tensor([[False, False, True, True], [True, True, True, False]])
    mask = output_mask(X, OutputFormat(external=sp.TopK(1, dim=1)), "x", within=within)
    assert mask.tolist() == [[False, False, True, False], [True, False, False, False]]
    assert torch.equal(output_mask(X, OutputFormat(), "x", within=within), within) and output_mask(X, OutputFormat(), "x").all()


def test_a_rule_that_needs_scores_keeps_all_as_long_as_there_are_none():
    format, scores = OutputFormat(inline=sp.Movement(0.5)), torch.arange(8.0).reshape(2, 4)
    assert output_mask(X, format, "x").all()
    assert output_mask(X, format, "x", scores).tolist() == [[False] * 4, [True] * 4]


@pytest.mark.parametrize(
    "format",
    [OutputFormat(tmp=sp.NMLayout(1, 4), external=sp.TopK(1, dim=1)), OutputFormat(sp.Magnitude(0.25), layout=sp.NMLayout(1, 4))],
)
def test_what_does_not_fit_between_or_at_the_end_is_refused(format):
    with pytest.raises(SparsityError, match=r"`x` cannot be stored as `nm:1:4`: more than 1 entries .* \(0, 0\.\.3\)"):
        output_mask(X, format, "x")


def test_what_a_layout_between_holds_may_be_selected_of():
    format = OutputFormat(sp.NM(2, 4), sp.NMLayout(2, 4), sp.Threshold(3.0), sp.ELL())
    assert output_mask(X, format, "x").sum(1).tolist() == [2, 1]


def test_a_sparsifier_of_the_user_sees_dense_numbers():
    @dataclass(frozen=True)
    class Diagonal(sp.Sparsifier):
        name: ClassVar[str] = "diagonal-of-a-test"

        def select(self, tensor, scores=None):
            assert tensor.layout == torch.strided and not tensor.requires_grad
            return torch.eye(*tensor.shape, dtype=torch.bool)

    model = nn.Linear(4, 4)
    model.weight = nn.Parameter(model.weight.detach().to_sparse_csc())
    sparse = sp.sparse_copy(model, SparseSpec((("weight", WeightEntry(Diagonal())),)))
    assert torch.equal(sparse.weight.detach(), model.weight.to_dense().diag().diag())


def normed():
    return nn.ModuleDict({"lin": nn.Linear(4, 4), "norm": nn.LayerNorm(4), "conv": nn.Conv1d(4, 4, 2)})


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("*.weight=magnitude:0.5:csr", ["lin.weight"]),
        ("*.weight=magnitude:0.5:coo", ["lin.weight", "norm.weight"]),
        ("*.weight=nmg:1:2:1", ["lin.weight"]),
        ("*.weight=nm:2:4", ["lin.weight", "norm.weight"]),
        ("*.weight=block:0.5:2x2", ["lin.weight"]),
    ],
)
def test_a_pattern_with_a_wildcard_speaks_of_what_has_enough_dimensions(rule, names):
    model = normed()
    del model["conv"]
    assert list(select_weights(model, sp.parse_sparsify(rule))) == names


def test_a_pattern_before_counts_where_the_last_one_does_not_speak_of_a_weight():
    spec = sp.parse_sparsify("*=magnitude:0.25:coo") + sp.parse_sparsify("*.weight=magnitude:0.5:csr")
    model = normed()
    del model["conv"]
    rules = {name: str(weight.entry.layout) for name, weight in select_weights(model, spec).items()}
    assert rules == {"lin.weight": "csr", "lin.bias": "coo", "norm.weight": "coo", "norm.bias": "coo"}


def test_more_dimensions_than_a_layout_has_are_refused():
    with pytest.raises(SparsityError, match=r"`conv.weight` cannot be stored as `csr`: it has 3 dimensions"):
        select_weights(normed(), sp.parse_sparsify("*.weight=magnitude:0.5:csr"))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "*.bias=magnitude:0.5:csr",
            r"no weight that `\*.bias` names has 2 dimensions, which `magnitude:0.5` with the layout `csr`",
        ),
        ("norm.weight=magnitude:0.5:csr", r"`norm.weight` cannot be stored as `csr`"),
    ],
)
def test_a_pattern_that_speaks_of_nothing_is_refused(rule, message):
    with pytest.raises(SparsityError, match=message) as error:
        select_weights(normed(), sp.parse_sparsify(rule))
    assert error.value.hint
