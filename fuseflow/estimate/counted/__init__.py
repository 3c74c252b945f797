"""Exact counts: the streams of a graph as nests of distinct fibers, counted from stored tensors."""
