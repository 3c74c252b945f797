"""Sparsifiers say which entries of a tensor are kept. `listing` has them by name."""
