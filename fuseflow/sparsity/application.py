"""The application of a spec to a model: its weights are pruned, and every run makes the tensors sparse that the spec names."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from fuseflow.errors import SparsityError
from fuseflow.sparsity.intermediates import install, uninstall
from fuseflow.sparsity.model_sparsity import ModelSparsity, clear_sparsity, set_sparsity, sparse_weights, sparsity_of, zero_pruned
from fuseflow.sparsity.spec import SparseSpec
from fuseflow.sparsity.weights import make_dense, replica, select_weights

M = TypeVar("M", bound=nn.Module)


def sparse_copy(model: M, spec: SparseSpec) -> M:
    """Return a copy of a model that a spec made sparse."""
    sparse = replica(model)
    sparsify(sparse, spec)
    return sparse


def sparsify(model: nn.Module, spec: SparseSpec, *, in_training: bool = False) -> None:
    """Make a model sparse by a spec: pruned entries of its weights become 0, and every run applies the rules of intermediates. A
    sparse model gets more rules. A rule that needs the scores of training prunes nothing yet if the model is `in_training`.

    Raise `SparsityError` for a spec that does not fit, and leave the model as it was.
    """
    state = sparsity_of(model) or ModelSparsity()
    weights = select_weights(model, spec, in_training=in_training)
    ruled = {id(parameter) for _, parameter, _ in sparse_weights(model)}
    parameters = dict(model.named_parameters())
    twice = [name for name in weights if id(parameters[name]) in ruled]
    twice += [name for name, _ in spec.intermediates if name in state.intermediates]
    if twice:
        raise SparsityError(f"`{twice[0]}` has a rule already", hint="name other tensors, or call `sp.clear(model)` first")
    for name, weight in weights.items():
        zero_pruned(make_dense(model, name), weight.mask)
    if spec.intermediates and not state.intermediates:
        install(model, state.intermediates)
    state.weights.update(weights)
    state.intermediates.update(spec.intermediates)
    set_sparsity(model, state)


def clear(model: nn.Module) -> None:
    """Make a sparse model a dense one again: it forgets its masks and rules. Zeros stay 0 until training changes them."""
    uninstall(model)
    for module in model.modules():
        clear_sparsity(module)
