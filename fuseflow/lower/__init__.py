"""Lowering: an Einsum program and a schedule become regions, and each region becomes a fused tree, a fusion table and a SAMML graph."""
