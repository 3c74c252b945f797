"""The hold on the sparse weights of a model, while an optimizer changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn
from torch.optim import Optimizer

from fuseflow.errors import SparsityError
from fuseflow.sparsity.state import sparse_weights
from fuseflow.sparsity.summary import SummaryRow, weight_rows
from fuseflow.sparsity.training.held_weight import HeldWeight
from fuseflow.sparsity.training.optimizer_state import Snapshot
from fuseflow.sparsity.training.schedule import Cubic
from fuseflow.sparsity.weights import selected_masks

When: TypeAlias = Literal["fixed", "new"]
"""Whether masks stay as they were selected at first, or are selected again while the model trains."""


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
        self._before_step: Snapshot | None = None
        self._hooks: list[Any] = []
        if optimizer is not None:
            self._hooks = [optimizer.register_step_pre_hook(self._begin), optimizer.register_step_post_hook(self._end)]
        self.project()

    @property
    def masks(self) -> dict[str, Tensor]:
        """The mask of each sparse weight by its qualified name. It is true where an entry is kept."""
        return {held.name: held.weight.mask for held in self._weights}

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
        """Treat the gradients that a step takes. If a closure makes them within the step, return arguments with one that also
        does."""
        due = self._due(self.steps + 1)
        self._before_step = Snapshot.of(optimizer) if any(held.may_misfit for held in due) else None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._treat_gradients()
            return None
        return (args[0],), {**kwargs, "closure": self._with_gradients(closure)}

    def _with_gradients(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> Any:
            loss = closure()
            self._treat_gradients()
            return loss

        return call

    def _treat_gradients(self) -> None:
        """Gather scores, and set entries that rules of gradients drop to 0. All masks are selected before a gradient is changed."""
        masks = [(held.parameter.grad, held.gradient_mask()) for held in self._weights]
        for held in self._weights:
            held.add_scores()
        for gradient, mask in masks:
            if gradient is not None and mask is not None:
                gradient.masked_fill_(~mask, 0)

    def _end(self, optimizer: Optimizer, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Select masks again if it is time, and set pruned entries to 0."""
        step = self.steps + 1
        try:
            self._select(self._due(step), None if self._schedule is None else self._schedule.fraction(step))
        except SparsityError:
            if self._before_step is not None:
                self._before_step.restore(optimizer)
            raise
        self._before_step = None
        self.steps = step
        self.project()

    def _due(self, step: int) -> tuple[HeldWeight, ...]:
        """Return the weights whose masks are selected again after a step."""
        last = self._schedule.steps if self._schedule is not None else 0
        if step % self._every and step != last:
            return ()
        return tuple(held for held in self._weights if self._when == "new" or step <= last or held.selects_itself)

    def _select(self, weights: Sequence[HeldWeight], fraction: float | None) -> None:
        """Select the masks of some weights again. All new masks are computed before one is set."""
        entries = [held.weight.entry if fraction is None else held.weight.entry.with_fraction(fraction) for held in weights]
        rules = {held.name: entry.sparsifier for held, entry in zip(weights, entries, strict=True) if held.selects_anew}
        tensors = {held.name: held.parameter.detach() for held in weights}
        selected = selected_masks(rules, tensors, {held.name: held.scores for held in weights})
        masks = [held.updated_mask(selected.get(held.name)) for held in weights]
        for held, entry, mask in zip(weights, entries, masks, strict=True):
            held.set_mask(mask, entry, self._optimizer)
            held.project()
