"""A sparse weight in training: its parameter, its mask, and when its mask is selected again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.spec import KEEP_ALL, WeightEntry
from fuseflow.sparsity.state import SparseWeight
from fuseflow.sparsity.training.optimizer_state import clear_entries
from fuseflow.sparsity.weights import output_mask


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
    def selects_itself(self) -> bool:
        """Whether the weight has a rule that selects another mask after steps: a rule for updates, or one that needs scores."""
        entry = self.weight.entry
        return entry.sparsifier.needs_scores or not entry.update.keeps_all

    @property
    def selects_anew(self) -> bool:
        """Whether the sparsifier of the weight itself selects again, because no rule for updates is given. One that keeps all
        selects nothing."""
        entry = self.weight.entry
        return entry.update.keeps_all and entry.sparsifier != KEEP_ALL

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

    def add_scores(self) -> None:
        """Add -weight * gradient to the scores."""
        if self.scores is not None and self.parameter.grad is not None:
            with torch.no_grad():
                self.scores.addcmul_(self.parameter.detach(), self.parameter.grad, value=-1)

    def gradient_mask(self) -> Tensor | None:
        """Return the mask that the rule of the gradient keeps, or None without a gradient or a rule."""
        rule, gradient = self.weight.entry.grad, self.parameter.grad
        return None if rule is None or gradient is None else output_mask(gradient, rule, f"the gradient of {self.name}")

    def updated_mask(self, selected: Tensor | None) -> Tensor:
        """Return the mask after a step: the entries that the rule for updates keeps, or `selected` without such a rule, in its layout.

        Raise `SparsityError` if it does not fit the layout.
        """
        update = self.weight.entry.update
        within = self.weight.mask if selected is None else selected
        return output_mask(self.parameter.detach(), update, self.name, self.scores, within if update.keeps_all else None)

    def set_mask(self, mask: Tensor, entry: WeightEntry, optimizer: Optimizer | None) -> None:
        """Hold another mask, which the rules of `entry` selected. The state of the optimizer for newly pruned entries becomes
        0."""
        pruned = ~mask.to(self.parameter.device)
        if optimizer is not None:
            clear_entries(optimizer, self.parameter, pruned & ~self.pruned)
        self.weight.entry, self.weight.mask, self.pruned = entry, mask, pruned


def _fits(layout: Layout, rule: Sparsifier) -> bool:
    """Return whether every later mask of a rule fits a layout if the first one did."""
    return layout.fits_by_shape or layout == rule.layout
