"""Optimizers as formulas of tensors. `listing` has them by name."""
