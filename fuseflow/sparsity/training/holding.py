"""Holding of sparse weights: a model trains like any other one, and pruned entries stay 0.

Recipes make a trained model sparse step by step, so that it loses little. Each takes the dense model, a spec, the optimizer of the model,
and `train`, a function that trains the model for a while with it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from fuseflow.errors import SparsityError
from fuseflow.sparsity.application import sparsify
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.model_sparsity import SparseWeight, sparse_weights, sparsity_of
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.spec import KEEP_ALL, SparseSpec, WeightEntry
from fuseflow.sparsity.summary import SummaryRow, weight_rows
from fuseflow.sparsity.weights import output_mask, selected_masks, weight_entries

When: TypeAlias = Literal["fixed", "new"]
"""Whether masks stay as they were selected at first, or are selected again while the model trains."""


def require_weights(optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> None:
    """Raise `SparsityError` if an optimizer does not hold one of the weights, which stand by name."""
    known = {id(parameter) for parameter in _parameters(optimizer)}
    for name, parameter in parameters.items():
        if id(parameter) not in known:
            raise SparsityError(
                f"the optimizer does not hold the weight `{name}`",
                hint="make the optimizer of `model.parameters()`, after the model was moved or copied",
            )


def replace_weights(optimizer: Optimizer, replaced: Mapping[int, nn.Parameter]) -> None:
    """Let an optimizer hold other weights: `replaced` has the new ones by the `id` of the old. The state of old ones is dropped."""
    for group in optimizer.param_groups:
        for old in group["params"]:
            if id(old) in replaced:
                optimizer.state.pop(old, None)
        group["params"] = [replaced.get(id(parameter), parameter) for parameter in group["params"]]


def clear_entries(optimizer: Optimizer, parameter: Tensor, entries: Tensor) -> None:
    """Set the state of an optimizer for some entries of a weight, such as their momentum, to 0. `entries` is their mask."""
    for value in optimizer.state.get(parameter, {}).values():
        if isinstance(value, Tensor) and value.shape == parameter.shape:
            value.masked_fill_(entries, 0)


def undo_of(optimizer: Optimizer) -> Callable[[], None]:
    """Return a function that undoes all that the next step of an optimizer changes: its weights, and its state for them."""
    values, state = [p.detach().clone() for p in _parameters(optimizer)], copy.deepcopy(optimizer.state_dict())

    def undo() -> None:
        with torch.no_grad():
            for parameter, value in zip(_parameters(optimizer), values, strict=True):
                parameter.copy_(value)
        optimizer.load_state_dict(state)

    return undo


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    groups: Iterable[Any] = (group["params"] for group in optimizer.param_groups)
    return (parameter for group in groups for parameter in group)


@dataclass(frozen=True, slots=True)
class Cubic:
    """A fraction that rises from `start` to `end` over `steps` steps of an optimizer, fast at first, when most entries are redundant.

    The fraction after k steps is end + (start - end) * (1 - k / steps) ** 3 (Zhu and Gupta, "To prune, or not to prune", 2017).

    >>> [round(Cubic(0.0, 0.8, steps=100).fraction(step), 2) for step in (0, 50, 100, 150)]
    [0.0, 0.7, 0.8, 0.8]
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= 1:
            hint = "give a start and a larger end between 0 and 1"
            raise SparsityError(f"a fraction cannot rise from {self.start} to {self.end}", hint=hint)
        if self.steps < 1:
            raise SparsityError(f"a fraction cannot rise within {self.steps} steps", hint="give one step or more")

    def fraction(self, step: int) -> float:
        """Return the fraction after `step` steps. After the last one it stays."""
        left = 1 - min(step, self.steps) / self.steps
        return self.end + (self.start - self.end) * left**3


@dataclass(slots=True, eq=False)
class HeldWeight:
    """A sparse weight whose pruned entries stay 0. `pruned` is the inverse of its mask on its device. A rule such as `movement`
    ranks its entries by `scores`."""

    name: str
    parameter: nn.Parameter
    weight: SparseWeight
    pruned: Tensor
    scores: Tensor | None

    @classmethod
    def of(cls, name: str, parameter: nn.Parameter, weight: SparseWeight) -> HeldWeight:
        """Return a sparse weight as it is when its training begins."""
        entry = weight.entry
        rules = (entry.sparsifier, entry.update.inline, entry.update.external)
        scores = torch.zeros_like(parameter.detach()) if any(rule.needs_scores for rule in rules) else None
        return cls(name, parameter, weight, ~weight.mask.to(parameter.device), scores)

    @property
    def may_misfit(self) -> bool:
        """Whether a mask that is selected later may not fit its layout."""
        update = self.weight.entry.update
        last = self.weight.entry.sparsifier if update.keeps_all else update.external
        return not (_fits(update.tmp, update.inline) and _fits(update.layout, last))

    def project(self) -> None:
        """Set the pruned entries to 0, whatever they are."""
        with torch.no_grad():
            self.parameter.masked_fill_(self.pruned, 0)

    def updated_mask(self, selected: Tensor | None) -> Tensor:
        """Return the mask after a step: the entries that the rule for updates keeps, or `selected` without such a rule, in its layout.

        Raise `SparsityError` if it does not fit the layout.
        """
        update = self.weight.entry.update
        within = self.weight.mask if selected is None else selected
        return output_mask(self.parameter.detach(), update, self.name, self.scores, within if update.keeps_all else None)

    def set_mask(self, mask: Tensor, entry: WeightEntry, optimizer: Optimizer | None) -> None:
        """Hold another mask, which the rules of `entry` selected. The state of the optimizer for newly pruned entries becomes 0."""
        pruned = ~mask.to(self.parameter.device)
        if optimizer is not None:
            clear_entries(optimizer, self.parameter, pruned & ~self.pruned)
        self.weight.entry, self.weight.mask, self.pruned = entry, mask, pruned


def _fits(layout: Layout, rule: Sparsifier) -> bool:
    """Return whether every later mask of a rule fits a layout if the first one did."""
    return layout.fits_by_shape or layout == rule.layout


def _reselects(entry: WeightEntry) -> bool:
    """Return whether the rules of a weight select another mask after each step, as one for updates does, or one that needs scores."""
    return entry.sparsifier.needs_scores or not entry.update.keeps_all


class Handle:
    """The hold on the sparse weights of a model, which `attach` returns. It ends with `remove`.

    A step that fails, since a new mask does not fit its layout, is undone.
    """

    steps: int
    """The steps of the optimizer so far."""

    def __init__(self, model: nn.Module, optimizer: Optimizer | None, when: When, every: int, schedule: Cubic | None) -> None:
        self.steps = 0
        self._model, self._optimizer = model, optimizer
        self._when, self._every, self._schedule = when, every, schedule
        self._weights = tuple(HeldWeight.of(*row) for row in sparse_weights(model))
        self._undo_step: Callable[[], None] | None = None
        self._hooks: list[Any] = []
        if optimizer is not None:
            self._hooks = [optimizer.register_step_pre_hook(self._begin), optimizer.register_step_post_hook(self._end)]
        self.project()

    @property
    def masks(self) -> dict[str, Tensor]:
        """The mask of each sparse weight by its qualified name. It is true where an entry is kept."""
        return {held.name: held.weight.mask for held in self._weights}

    @property
    def is_fixed(self) -> bool:
        """Whether all later steps keep the masks as they are, and no rule changes a gradient before a step."""
        entries = [held.weight.entry for held in self._weights]
        rises = self._schedule is not None and self.steps < self._schedule.steps
        return self._when == "fixed" and not rises and all(not _reselects(entry) and entry.grad is None for entry in entries)

    def project(self) -> None:
        """Set all pruned entries to 0."""
        for held in self._weights:
            held.project()

    def select(self, fraction: float | None = None) -> None:
        """Let the rules select all masks again, with another fraction of pruned entries if one is given.

        Raise `SparsityError`, and change nothing, if a mask does not fit its layout, or a rule has no fraction.
        """
        self._select(self._weights, fraction)

    def report(self) -> list[SummaryRow]:
        """Return a row for each sparse weight: how many entries are kept, by which rule, and its bytes."""
        return weight_rows({}, self._model)

    def remove(self) -> None:
        """Remove the hooks from the optimizer. Masks and rules stay with the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _begin(self, optimizer: Optimizer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Treat the gradients that a step takes. If a closure makes them within the step, return arguments with one that also does."""
        due = self._due(self.steps + 1)
        self._undo_step = undo_of(optimizer) if any(held.may_misfit for held in due) else None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._treat_gradients()
            return None

        def with_gradients() -> Any:
            loss = closure()
            self._treat_gradients()
            return loss

        return (args[0],), {**kwargs, "closure": with_gradients}

    def _treat_gradients(self) -> None:
        """Gather scores, and set entries that rules of gradients drop to 0. All masks are selected before a gradient is changed."""
        trained = [(held, held.parameter.grad) for held in self._weights if held.parameter.grad is not None]
        masks = [
            (gradient, output_mask(gradient, held.weight.entry.grad, f"the gradient of {held.name}"))
            for held, gradient in trained
            if held.weight.entry.grad is not None
        ]
        with torch.no_grad():
            for held, gradient in trained:
                if held.scores is not None:  # a sum of -weight * gradient
                    held.scores.addcmul_(held.parameter.detach(), gradient, value=-1)
        for gradient, mask in masks:
            gradient.masked_fill_(~mask, 0)

    def _end(self, optimizer: Optimizer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Select masks again if it is time, and set pruned entries to 0."""
        step = self.steps + 1
        try:
            self._select(self._due(step), None if self._schedule is None else self._schedule.fraction(step))
        except SparsityError:
            if self._undo_step is not None:
                self._undo_step()
            raise
        self._undo_step = None
        self.steps = step
        self.project()

    def _due(self, step: int) -> tuple[HeldWeight, ...]:
        """Return the weights whose masks are selected again after a step."""
        last = self._schedule.steps if self._schedule is not None else 0
        if step % self._every and step != last:
            return ()
        if self._when == "new" or step <= last:
            return self._weights
        return tuple(held for held in self._weights if _reselects(held.weight.entry))

    def _select(self, weights: Sequence[HeldWeight], fraction: float | None) -> None:
        """Select the masks of some weights again. All new masks are computed before one is set."""
        entries = [held.weight.entry if fraction is None else held.weight.entry.with_fraction(fraction) for held in weights]
        # The sparsifier of a weight itself selects again if no rule for updates is given. One that keeps all selects nothing.
        rules = {
            held.name: entry.sparsifier
            for held, entry in zip(weights, entries, strict=True)
            if entry.update.keeps_all and entry.sparsifier != KEEP_ALL
        }
        tensors = {held.name: held.parameter.detach() for held in weights}
        selected = selected_masks(rules, tensors, {held.name: held.scores for held in weights})
        masks = [held.updated_mask(selected.get(held.name)) for held in weights]
        for held, entry, mask in zip(weights, entries, masks, strict=True):
            held.set_mask(mask, entry, self._optimizer)
            held.project()


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
    if spec is None and not any(sparsity_of(module) for module in model.modules()):
        raise SparsityError("the model is dense, and there is no spec", hint="pass a spec, such as that of a `SparsityBuilder`")
    parameters = dict(model.named_parameters())
    named: dict[str, Tensor] = {name: parameter for name, parameter, _ in sparse_weights(model)}
    named |= {name: parameters[name] for name in entries}
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


def _require_fractions(model: nn.Module, entries: dict[str, WeightEntry]) -> None:
    """Raise `SparsityError` for a weight whose sparsifier takes no fraction, and for one whose pattern a rule updates. Checked are
    the sparse weights of the model and those that `entries` of a spec name."""
    known = {name: weight.entry for name, _, weight in sparse_weights(model)}
    for name, entry in (known | entries).items():
        entry.with_fraction(0.0)
        if not entry.update.keeps_all:
            raise SparsityError(
                f"`{name}` has a rule for updates, and a schedule selects by the first one", hint="leave out one of the two"
            )


def one_shot(model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object]) -> Handle:
    """Prune all weights at once, then train."""
    handle = attach(model, spec, optimizer)
    train()
    return handle


def iterative(
    model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object], fractions: Sequence[float]
) -> Handle:
    """Prune all weights by one fraction after the other, and train after each."""
    if not fractions:
        raise SparsityError("there is no fraction to prune by", hint="pass several, such as 0.5, 0.7 and 0.8")
    handle = attach(model, spec.with_fraction(fractions[0]), optimizer)
    for fraction in fractions:
        handle.select(fraction)
        train()
    return handle


def layer_wise(model: nn.Module, spec: SparseSpec, optimizer: Optimizer, train: Callable[[], object]) -> Handle:
    """Prune one weight after the other, in the order of the model, and train after each."""
    handle = attach(model, SparseSpec(intermediates=spec.intermediates), optimizer)
    for name, entry in weight_entries(model, spec).items():
        handle.remove()
        handle = attach(model, SparseSpec(((name, entry),)), optimizer)
        train()
    return handle
