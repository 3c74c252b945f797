"""A graph in which every row waits for its largest value: its values need a FIFO of a row."""

from __future__ import annotations

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse


def offsets(rows: int, columns: int) -> Graph:
    """Return the graph of `y[i, j] = x[i, j] - max(j) x[i, j]` on dense tensors. The edge that holds a row is input 0 of `off`."""
    return parse(f"""
graph g
tensor x[{rows}, {columns}]  dense
tensor y[{rows}, {columns}]  dense
output y
root = root()
x_i = scan(root) x.0
x_j = scan(x_i.ref) x.1
x_v = load(x_j.ref) x
most = reduce(x_v) max
back = repeat(most, x_j.crd)
off = alu(x_v, back) sub N->0,N->0
y_i = write(x_i.crd) y.0
y_j = write(x_j.crd) y.1
y_v = write(off) y.vals
""")
