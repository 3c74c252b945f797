"""Explanations as values: what is fused and why, in which orders loops run, what takes the cycles. `fuseflow.report` renders them."""
