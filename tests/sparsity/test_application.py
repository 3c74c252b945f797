"""A model gets more rules, forgets them, and stands in other models that have rules."""

import copy

import pytest
import torch
from torch import nn

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError
from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, SparseSpec, WeightEntry

HALF = WeightEntry(sp.Magnitude(0.5))
ABOVE = IntermediateEntry(OutputFormat(external=sp.Threshold(0.3)))


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        return self.out(torch.tanh(self.inner(x)))


def hooks(model):
    return [len(h) for m in model.modules() for h in (m._forward_hooks, m._forward_pre_hooks, m._forward_hooks_always_called)]


def test_a_sparse_model_gets_more_rules():
    model, x = Outer(), torch.randn(3, 4)
    sp.sparsify(model, SparseSpec((("out.weight", HALF),), (("tanh", ABOVE),)))
    sp.sparsify(model, SparseSpec((("inner.0.weight", HALF),), (("inner.1", ABOVE),)))
    assert [name for name, *_ in sp.sparse_weights(model)] == ["out.weight", "inner.0.weight"]
    inner = torch.relu(model.inner[0](x))
    inner = torch.tanh(inner * (inner >= 0.3))
    torch.testing.assert_close(model(x), model.out(inner * (inner >= 0.3)))
    assert hooks(model) == hooks(sp.sparse_copy(Outer(), SparseSpec((), (("tanh", ABOVE),))))


@pytest.mark.parametrize(
    "spec", [SparseSpec((("out.*", HALF),)), SparseSpec((), (("tanh", ABOVE),))], ids=["weight", "intermediate"]
)
def test_what_has_a_rule_gets_no_second_one(spec):
    model = Outer()
    sp.sparsify(model, SparseSpec((("out.weight", HALF),), (("tanh", ABOVE),)))
    before, known = copy.deepcopy(model.state_dict()), hooks(model)
    with pytest.raises(SparsityError, match="has a rule already") as error:
        sp.sparsify(model, spec + SparseSpec((("inner.0.weight", HALF),)))
    assert "sp.clear(model)" in error.value.hint
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()) and hooks(model) == known
    assert [*sp.sparsity_of(model).weights] == ["out.weight"]


def test_a_weight_that_a_module_inside_made_sparse_gets_no_second_rule():
    model = Outer()
    sp.sparsify(model.inner, SparseSpec((("0.weight", HALF),)))
    with pytest.raises(SparsityError, match=r"`inner\.0\.weight` has a rule already"):
        sp.sparsify(model, SparseSpec((("*.weight", HALF),)))
    assert bool((model.out.weight != 0).all()) and sp.sparsity_of(model) is None
    sp.sparsify(model, SparseSpec((("out.weight", HALF),)))
    assert [name for name, *_ in sp.sparse_weights(model)] == ["out.weight", "inner.0.weight"]


def test_a_cleared_model_keeps_its_zeros_and_nothing_else():
    model, x = Outer(), torch.randn(3, 4)
    plain = hooks(model)
    sp.sparsify(model, SparseSpec((("out.weight", HALF),), (("tanh", ABOVE),)))
    weight = model.out.weight.clone()
    sp.clear(model)
    assert torch.equal(model.out.weight, weight) and sp.sparsity_of(model) is None and not [*sp.sparse_weights(model)]
    torch.testing.assert_close(model(x), model.out(torch.tanh(model.inner(x))))
    assert hooks(model) == plain
    sp.sparsify(model, SparseSpec((("out.weight", HALF),), (("tanh", ABOVE),)))
    assert torch.equal(model.out.weight, weight)


def test_a_cleared_copy_leaves_the_rules_of_the_model():
    model, x = sp.sparse_copy(Outer(), SparseSpec((), (("inner", ABOVE),))), torch.randn(3, 4)
    twin, result = copy.deepcopy(model), model(x)
    sp.clear(twin)
    assert set(hooks(twin)) == {0} and torch.equal(model(x), result) and not torch.equal(twin(x), result)


def test_clearing_a_model_clears_the_modules_inside_and_not_the_one_around():
    model, x, few = Outer(), torch.randn(3, 4), IntermediateEntry(OutputFormat(sp.Magnitude(0.95)))
    dense = model(x)
    sp.sparsify(model.inner, SparseSpec((), (("0", few),)))
    sp.sparsify(model, SparseSpec((), (("tanh", ABOVE),)))
    both = model(x)
    sp.clear(model.inner)
    one = model(x)
    assert not torch.equal(both, one) and not torch.equal(one, dense)
    sp.sparsify(model.inner, SparseSpec((), (("0", few),)))
    assert torch.equal(model(x), both)
    sp.clear(model)
    assert torch.equal(model(x), dense) and set(hooks(model)) == {0}


def test_a_dense_model_can_be_cleared():
    model = Outer()
    sp.clear(model)
    assert set(hooks(model)) == {0}


def test_an_empty_spec_changes_nothing():
    model = sp.sparse_copy(Outer(), SparseSpec())
    assert set(hooks(model)) == {0} and torch.equal(model.out.weight, Outer().out.weight)
