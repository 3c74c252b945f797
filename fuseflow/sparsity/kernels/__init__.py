"""Operators on stored sparse tensors: products, sums and pointwise functions, which never make a stored tensor dense."""
