"""Layouts say how the kept entries of a tensor are stored. Each stands in a file of its own, and `listing` has them by name."""
