"""Optimizers as formulas of tensors. Each stands in a file of its own, and `listing` has them by name."""
