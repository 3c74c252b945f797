"""Sparsifiers say which entries of a tensor are kept. Each stands in a file of its own, and `listing` has them by name."""
