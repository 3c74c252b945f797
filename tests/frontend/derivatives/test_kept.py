"""Gradients of what a rule of `keep` leaves."""

from __future__ import annotations

import torch

from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.trace.sparsified_tensors import keep

X, MARKER, GRADIENT = torch.tensor([3.0, 1.0, 2.0]), torch.ones(3), torch.tensor([5.0, 6.0, 7.0])


def test_what_is_dropped_has_no_gradient() -> None:
    of_x, of_marker = RULES[keep]((GRADIENT,), (torch.tensor([3.0, 0.0, 2.0]),), X, MARKER)
    assert of_x is not None and of_x.tolist() == [5.0, 0.0, 7.0] and of_marker is None


def test_which_entries_are_kept_has_no_gradient() -> None:
    assert RULES[keep]((GRADIENT,), (torch.tensor([1.0, 0.0, 1.0]),), X, MARKER, True) == (None, None)
