"""The explanation of loop orders: what every loop stands for, and how many orders there are."""

from __future__ import annotations

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.order import explain_order, summarize_loops
from fuseflow.schedule import Schedule

SOFTMAX = """
    tensor A[9, 9] csr
    tensor X[9, 5] dense
    T[i, j] = sum(k) A[i, k] * X[k, j]
    m[i] = max(j) T[i, j]
    E[i, j] = exp(T[i, j] - m[i])
    Y[i, j] = E[i, j] / (sum(l) E[i, l])
    output Y
"""


def test_every_loop_says_what_it_runs_over():
    summaries = summarize_loops(ff.compile(parse(SOFTMAX), schedule=Schedule.fuse("full")).regions[-1].fused)
    inner, column = next(loop for loop in summaries if not loop.results), next(loop for loop in summaries if loop.size == 5)
    k, (i, j) = inner.index, [loop.index for loop in summaries if loop.results]
    assert column.index == j and column.results == ("Y",) and column.names == ("Y.l",)
    assert column.reduced == (f"max m[{i}]", f"sum Y.sum[{i}]") and column.views == (f"X[{k}, {j}]",)
    assert inner.reduced == (f"sum T[{i}, {j}]",) and inner.size == 9 and inner.views == (f"A[{i}, {k}]", f"X[{k}, {j}]")


def test_later_regions_count_what_earlier_ones_stored():
    program = ff.compile(parse(SOFTMAX), schedule=Schedule.fuse("none"))
    for report in explain_order(program, "reference"):
        assert all(c.constrained.orders >= 1 for c in report.counts.values())
