"""Hints in messages: the replacements for operators without an Einsum form."""

from __future__ import annotations

HINT_OUTSIDE = "compute it outside the model, and pass the result as an argument"
HINT_LIBRARY = "a library calls it, and nothing takes its place: choose another layer, or compile the modules around this one"
"""The hint where the user did not write the code."""
HINTS_WITHOUT_ALTERNATIVE = frozenset({HINT_OUTSIDE, HINT_LIBRARY})
"""Hints that name no other way to compute the same in a model."""
HINT_EVAL = "call .eval() on the model"
HINT_DROPOUT = f"{HINT_EVAL}; a dropout function needs `training=self.training` to notice"
