"""Exact counts. The streams of a graph are counted from stored tensors, as nests of distinct fibers."""
