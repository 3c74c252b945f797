"""Chooses how the tensors of a training step are stored."""
