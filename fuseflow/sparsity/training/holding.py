"""Holding of sparse weights: a model trains like any other one, and pruned entries stay 0."""

from __future__ import annotations

from torch import Tensor, nn
from torch.optim import Optimizer

from fuseflow.errors import SparsityError
from fuseflow.sparsity.application import sparsify
from fuseflow.sparsity.spec import SparseSpec, WeightEntry
from fuseflow.sparsity.state import sparse_weights, sparsity_of
from fuseflow.sparsity.training.handle import Handle, When
from fuseflow.sparsity.training.optimizer_state import replace_weights, require_weights
from fuseflow.sparsity.training.schedule import Cubic
from fuseflow.sparsity.weights import weight_entries


def attach(
    model: nn.Module,
    spec: SparseSpec | None = None,
    optimizer: Optimizer | None = None,
    *,
    when: When = "fixed",
    every: int = 1,
    schedule: Cubic | None = None,
) -> Handle:
    """Make a model sparse by a spec, and hold its masks while an optimizer trains it. Without a spec, hold the masks that the model has.

    After each step of the optimizer, pruned entries are 0 again. With `when="new"`, the rules select the masks again after every `every`
    steps; with a `schedule`, they do so as long as its fraction rises. A weight whose entry has a rule for updates selects by that one.
    Rules of gradients act before the step, when the processes of a distributed model have summed them. Without an optimizer, call
    `Handle.project` after each step of your own.

    Raise `SparsityError`, and leave the model as it was, for a spec that `sparsify` refuses, for an optimizer that does not hold
    a sparse weight, and for a schedule of a rule that has no fraction.
    """
    if when not in ("fixed", "new"):
        raise SparsityError(f"masks cannot be `{when}`", hint='`when` is "fixed" or "new"')
    if every < 1:
        raise SparsityError(f"masks cannot be selected every {every} steps", hint="`every` is 1 or more")
    entries = {} if spec is None else weight_entries(model, spec)
    _require_some(model, spec)
    named = _named_weights(model, entries)
    if optimizer is not None:
        require_weights(optimizer, named)
    if schedule is not None:
        _require_fractions(model, entries)
        spec = None if spec is None else spec.with_fraction(schedule.fraction(0))
    if spec is not None:
        sparsify(model, spec, in_training=True)
    if optimizer is not None:
        now = dict(model.named_parameters(remove_duplicate=False))
        replace_weights(optimizer, {id(old): now[name] for name, old in named.items() if now[name] is not old})
    return Handle(model, optimizer, when, every, schedule)


def _require_some(model: nn.Module, spec: SparseSpec | None) -> None:
    """Raise `SparsityError` if there is nothing to hold."""
    if spec is None and not any(sparsity_of(module) for module in model.modules()):
        raise SparsityError("the model is dense, and there is no spec", hint="pass a spec, such as that of a `SparsityBuilder`")


def _named_weights(model: nn.Module, entries: dict[str, WeightEntry]) -> dict[str, Tensor]:
    """Return the weights of a model that are sparse, or that entries name."""
    parameters = dict(model.named_parameters())
    known: dict[str, Tensor] = {name: parameter for name, parameter, _ in sparse_weights(model)}
    return known | {name: parameters[name] for name in entries}


def _require_fractions(model: nn.Module, entries: dict[str, WeightEntry]) -> None:
    """Raise `SparsityError` for a weight, sparse or with an entry, whose sparsifier has no fraction, or with a rule for
    updates."""
    known = {name: weight.entry for name, _, weight in sparse_weights(model)}
    for name, entry in (known | entries).items():
        entry.with_fraction(0.0)
        if not entry.update.keeps_all:
            raise SparsityError(
                f"`{name}` has a rule for updates, and a schedule selects by the first one", hint="leave out one of the two"
            )
