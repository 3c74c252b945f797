"""Patterns of pruned weights: what they keep is stored, zeros too, in the format of their layout, in parts of them as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
import fuseflow.sparsity as sp
from fuseflow.einsum.text import show
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.trace.sparsified_tensors import weight_patterns
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.layouts.listing import parse_layout
from fuseflow.sparsity.model_sparsity import sparse_weights
from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier

X = torch.linspace(-1, 1, 24).reshape(3, 8)


class Product(nn.Module):
    """A product with a weight, or with what `part` makes of it."""

    def __init__(self, part: Any = lambda weight: weight) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.part(self.weight)


def sparse(model: nn.Module, rule: str = "magnitude:0.5", layout: str = "csr", weight: str = "weight") -> nn.Module:
    builder = sp.SparsityBuilder()
    builder.set_weight(weight, initial_sparsifier=parse_sparsifier(rule), out_format=parse_layout(layout))
    return builder.get_sparse_model(model)


def with_kept_zeros(model: nn.Module) -> int:
    """Set the kept entries of every sparse weight to 0 but the first one, and return how many entries are kept."""
    kept = 0
    for _, parameter, weight in sparse_weights(model):
        first = tuple(weight.mask.nonzero()[0])
        with torch.no_grad():
            value = parameter[first].clone()
            parameter.zero_()
            parameter[first] = value
        kept += int(weight.mask.sum())
    return kept


def as_in_pytorch(model: nn.Module, imported: Source) -> None:
    """Require that the stored weights are those of the model, and so its outputs."""
    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for name, tensor in imported.tensors.items():
        if name in weights:
            np.testing.assert_array_equal(tensor.to_dense(), weights[name])
    (expected,) = imported.expected.values()
    np.testing.assert_allclose(expected, model(X).detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("rule", "layout", "format"),
    [
        ("magnitude:0.5", "csr", "csr"),
        ("magnitude:0.5", "csc", "csc"),
        ("magnitude:0.5", "coo", "coo"),
        ("topk:3", "ell", "csr"),
        ("block:0.5:2x4", "bcsr:2x4", "csr block 2x4"),
        ("nm:2:4", "nm:2:4", "nm(2:4)"),
        ("nm:1:4:dim=0", "nm:1:4:dim=0", "(dense, nm(1:4)) order (1, 0)"),
        ("nmg:1:2:4", "nmg:1:2:4", "(dense, nm(1:2)) order (1, 0)"),
        ("magnitude:0.5", "masked", "dense"),
        ("magnitude:0.5", "dense", "dense"),
    ],
)
def test_weights_are_stored_as_their_layout_says(rule: str, layout: str, format: str) -> None:
    model = sparse(Product(), rule, layout)
    imported = import_model(model, (X,))
    declared = next(line for line in show(imported.program).splitlines() if line.startswith("tensor weight"))
    assert declared.partition("]")[2].strip() == format
    as_in_pytorch(model, imported)


@pytest.mark.parametrize(
    ("rule", "layout"), [("magnitude:0.5", "csr"), ("magnitude:0.5", "csc"), ("magnitude:0.5", "coo"), ("topk:3", "ell")]
)
def test_kept_zeros_are_not_stored(rule: str, layout: str) -> None:
    model = sparse(Product(), rule, layout)
    assert with_kept_zeros(model) > 8
    stored = import_model(model, (X,)).tensors["weight"]
    assert stored.coordinates().shape[1] == stored.values.size == np.count_nonzero(stored.values) == 1


def test_kept_blocks_of_zeros_are_not_stored() -> None:
    model = sparse(Product(), "block:0.5:2x4", "bcsr:2x4")
    assert with_kept_zeros(model) == 32
    assert import_model(model, (X,)).tensors["weight"].values.size == 8


def test_groups_of_n_of_m_are_padded() -> None:
    model = sparse(Product(), "nm:2:4", "nm:2:4")
    kept = with_kept_zeros(model)
    assert import_model(model, (X,)).tensors["weight"].values.size == kept == 32


@pytest.mark.parametrize("layout", ["csr", "masked"])
def test_a_format_of_the_user_stores_the_pattern(layout: str) -> None:
    model = sparse(Product(), layout=layout)
    stored = import_model(model, (X,), {"weight": "coo"}).tensors["weight"]
    assert stored.format.short() == "coo" and stored.coordinates().shape[1] == 32
    whole = import_model(model, (X,), {"weight": "csr all"}).tensors["weight"]
    assert whole.values.size == 64 and np.count_nonzero(whole.values) == 32


def test_patterns_have_the_names_of_parameters() -> None:
    inner = sparse(nn.Linear(8, 8), layout="coo")
    outer = sparse(nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Linear(8, 8)}), weight="a.weight")
    outer["inner"] = inner
    patterns = weight_patterns(outer)
    assert {name: str(pattern.layout) for name, pattern in patterns.items()} == {"a.weight": "csr", "inner.weight": "coo"}
    assert int(patterns["a.weight"].mask.sum()) == 32
    assert not weight_patterns(nn.Linear(8, 8))


def test_a_tied_weight_is_stored_once() -> None:
    model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.ReLU(), nn.Linear(8, 8, bias=False))
    model[2].weight = model[0].weight
    tied = sparse(model, weight="0.weight")
    assert tied[2].weight is tied[0].weight
    imported = import_model(tied, (X,))
    assert [(t.name, t.format.short()) for t in imported.program.inputs if "weight" in t.name] == [("0.weight", "csr")]
    as_in_pytorch(tied, imported)


@pytest.mark.parametrize(
    ("part", "layout", "format"),
    [
        (lambda w: w[:, 2:7], "csr", "csr"),
        (lambda w: w[:, :4], "nm:2:4", "nm(2:4)"),
        (lambda w: w[:, 1:6], "nm:2:4", "csr"),
    ],
    ids=["slice", "whole groups", "parts of groups"],
)
def test_parts_that_are_taken_before_import_keep_their_pattern(part: Any, layout: str, format: str) -> None:
    model = sparse(Product(part), "nm:2:4", layout)
    ((_, _, weight),) = sparse_weights(model)
    x = X[:, : part(weight.mask).shape[0]]
    imported = import_model(model, (x,))
    (tensor,) = (t for name, t in imported.tensors.items() if name != "x")
    assert tensor.format.short() == format and tensor.values.size == int(part(weight.mask).sum())
    np.testing.assert_allclose(*imported.expected.values(), model(x).detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "part", [lambda w: torch.cos(w), lambda w: w[:, [5, 0, 3]], lambda w: w + 1], ids=["cos", "columns", "sum"]
)
def test_what_is_computed_of_a_weight_is_right(part: Any) -> None:
    model = sparse(Product(part))
    imported = import_model(model, (X,))
    computed = ff.compile(model, (X,)).interpret().values()
    np.testing.assert_allclose(*computed, model(X).detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(*imported.expected.values(), model(X).detach().numpy(), rtol=1e-6)


@dataclass(frozen=True, slots=True)
class PlainLayout(Layout):
    """A layout that PyTorch alone has."""

    name = "plain"

    def pack(self, tensor: Tensor, mask: Tensor) -> Any:
        return tensor * mask


def test_a_layout_without_a_format_is_refused_with_those_that_have_one() -> None:
    builder = sp.SparsityBuilder()
    builder.set_weight("weight", initial_sparsifier=sp.Magnitude(0.5), out_format=PlainLayout())
    model = builder.get_sparse_model(Product())
    with pytest.raises(FrontendError, match="the weight `weight` has the layout `plain`, which runs in PyTorch only") as caught:
        import_model(model, (X,))
    assert "`csr`" in str(caught.value.hint) and "`nm`" in str(caught.value.hint)
