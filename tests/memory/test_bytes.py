"""Bytes that are asked for and moved, against counts by hand, exactly: what each array of a program takes, pass by pass.

Asked for are elements, at every firing that needs one. Moved are lines: a port asks for a line again when it asked for another in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, TypeAlias

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.run.result import Result
from fuseflow.sim import load_machine
from fuseflow.sim.engine_names import Engine

Bytes: TypeAlias = dict[tuple[str, str, str], tuple[int, int]]
"""Of a tensor, an array and a direction: asked for, moved."""
WORD = 4
ENGINES = pytest.mark.parametrize("engine", ["reference", "fast"])
LINES = pytest.mark.parametrize("line", [32, 64])


def run(text: str, tensors: Mapping[str, Any], line: int, engine: Engine, schedule: ff.Schedule | None = None) -> Result:
    machine = load_machine("rda", {"memory.line": line, "memory.channels": 2})
    return ff.compile(parse(text), tensors=tensors, schedule=schedule, machine=machine).run(engine=engine)


def bytes_of(result: Result, region: int = 0) -> Bytes:
    """Of a region. The statistics of ports, channels and the whole are the same bytes."""
    simulation = result.regions[region].simulation
    memory = simulation.memory
    assert memory is not None
    found: Bytes = {}
    for t in simulation.traffic:
        ports = [of for port, of in memory.ports if (port.tensor, port.kind, port.direction) == (t.tensor, t.kind, t.direction)]
        assert all(of.asked_bytes == of.moved_bytes for of in ports)  # whole lines
        found[t.tensor, t.kind, t.direction] = (t.bytes, sum(of.moved_bytes for of in ports))
    total = sum(moved for _, moved in found.values())
    assert memory.moved_bytes() == total == memory.moved_bytes("read") + memory.moved_bytes("write")
    assert 32 * (memory.total("reads") + memory.total("writes")) == total
    assert memory.bound == ceil(total / (2 * 32)) <= simulation.cycles
    return found


def once(words: int, line: int) -> tuple[int, int]:
    """Of an array that goes by once, from its start."""
    return WORD * words, line * ceil(WORD * words / line)


def visited(elements: np.ndarray, line: int) -> tuple[int, int]:
    """Of elements that are asked for one after the other."""
    lines = elements * WORD // line
    return WORD * len(lines), line * (1 + int(np.count_nonzero(np.diff(lines))))


MATMUL = "tensor A[4, 32] dense\ntensor X[32, 16] dense\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n"
M, K, N = 4, 32, 16


@ENGINES
@LINES
@pytest.mark.parametrize("order", ["i,j,k", "i,k,j", "j,i,k", "j,k,i", "k,i,j", "k,j,i"])
def test_a_dense_product_in_every_order(order: str, line: int, engine: Engine) -> None:
    """A row of A is two or four lines, one of X one or two; a column is a line an element."""
    rows_a, rows_x = WORD * K // line, WORD * N // line
    a, x = {
        "i,j,k": ((M * N * K, M * N * rows_a), (M * N * K, M * N * K)),  # a row of A and a column of X for each element
        "i,k,j": ((M * K, M * rows_a), (M * N * K, M * K * rows_x)),  # A once, X once a row of A
        "j,i,k": ((M * N * K, N * M * rows_a), (M * N * K, N * M * K)),
        "j,k,i": ((M * N * K, N * K * M), (N * K, N * K)),  # X once, by columns
        "k,i,j": ((M * K, K * M), (M * N * K, K if rows_x == 1 else K * M * rows_x)),  # a row that is one line stays
        "k,j,i": ((M * N * K, K * N * M), (N * K, K * rows_x)),
    }[order]
    rng = np.random.default_rng(0)
    tensors = {"A": rng.random((M, K), np.float32), "X": rng.random((K, N), np.float32)}
    assert bytes_of(run(MATMUL, tensors, line, engine, ff.Schedule.order("Y", order))) == {
        ("A", "val", "read"): (WORD * a[0], line * a[1]),
        ("X", "val", "read"): (WORD * x[0], line * x[1]),
        ("Y", "val", "write"): once(M * N, line),
    }


FILLED = 18
"""Of 20 rows those with an entry: no value is computed in the others, and none is written."""


def sparse(rows: int, columns: int, density: float, seed: int) -> np.ndarray:
    """With two empty rows, and two that end and begin in the same column."""
    found = (np.random.default_rng(seed).random((rows, columns)) < density).astype(np.float32)
    found[[2, 3]] = 0
    found[5, -4:] = found[6, :-4] = 0
    found[5, -5] = found[6, -5] = 1
    return found


SPMM = "tensor A[20, 40] csr\ntensor X[40, {n}] dense\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y\n"


@ENGINES
@LINES
@pytest.mark.parametrize("n", [16, 5])
def test_spmm_reads_a_once_and_gathers_rows_of_x(n: int, line: int, engine: Engine) -> None:
    a = sparse(20, 40, 0.2, seed=1)
    columns = np.nonzero(a)[1]
    rows = (columns[:, None] * n + np.arange(n)).ravel()
    result = run(SPMM.format(n=n), {"A": a, "X": np.ones((40, n), np.float32)}, line, engine, ff.Schedule.order("Y", "i,k,j"))
    assert bytes_of(result) == {
        ("A", "pos", "read"): (WORD * 2 * 20, once(21, line)[1]),  # both ends of every row are asked for
        ("A", "crd", "read"): once(len(columns), line),
        ("A", "val", "read"): once(len(columns), line),
        ("X", "val", "read"): visited(rows, line),
        ("Y", "val", "write"): once(FILLED * n, line),
    }


GCN = """tensor A[20, 20] csr
tensor X[20, 40] csr
tensor W[40, 16] dense
T[i, j] = sum(k) X[i, k] * W[k, j]
Y[i, j] = sum(k) A[i, k] * T[k, j]
output Y
"""


@ENGINES
@LINES
def test_a_fused_layer_recomputes_a_row_for_each_use(line: int, engine: Engine) -> None:
    """A (X W) in one graph: a row of X, and the rows of W that it names, for each entry of A."""
    a, x = sparse(20, 20, 0.3, seed=2), sparse(20, 40, 0.2, seed=3)
    result = run(GCN, {"A": a, "X": x, "W": np.ones((40, 16), np.float32)}, line, engine, ff.Schedule.fuse("full"))
    assert [region.name for region in result.regions] == ["full"]
    uses = np.nonzero(a)[1]
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
    entries = np.concatenate([np.arange(ends[row], ends[row + 1]) for row in uses])
    columns = np.nonzero(x)[1][entries]
    assert bytes_of(result) == {
        ("A", "pos", "read"): (WORD * 2 * 20, once(21, line)[1]),
        ("A", "crd", "read"): once(len(uses), line),
        ("A", "val", "read"): once(len(uses), line),
        ("X", "pos", "read"): visited((uses[:, None] + [0, 1]).ravel(), line),
        ("X", "crd", "read"): visited(entries, line),
        ("X", "val", "read"): visited(entries, line),
        ("W", "val", "read"): visited((columns[:, None] * 16 + np.arange(16)).ravel(), line),
        ("Y", "val", "write"): once(FILLED * 16, line),
    }


@ENGINES
@LINES
def test_unfused_the_same_layer_writes_and_reads_what_is_between(line: int, engine: Engine) -> None:
    a, x = sparse(20, 20, 0.3, seed=2), sparse(20, 40, 0.2, seed=3)
    result = run(GCN, {"A": a, "X": x, "W": np.ones((40, 16), np.float32)}, line, engine, ff.Schedule.fuse("none"))
    first, second = bytes_of(result), bytes_of(result, 1)
    assert first["X", "crd", "read"] == first["X", "val", "read"] == once(np.count_nonzero(x), line)
    assert first["T", "val", "write"] == once(FILLED * 16, line)
    rows = (np.nonzero(a)[1][:, None] * 16 + np.arange(16)).ravel()
    assert second["T", "val", "read"] == visited(rows, line)
    assert second["Y", "val", "write"] == once(FILLED * 16, line)


SOFTMAX = """tensor A[10, 24] csr fill -inf
m[i]    = max(j) A[i, j]
E[i, j] = exp(A[i, j] - m[i])
Y[i, j] = E[i, j] / (sum(l) E[i, l])
output Y
"""


@ENGINES
@LINES
def test_a_fused_softmax_reads_and_writes_everything_once(line: int, engine: Engine) -> None:
    stored = sparse(10, 24, 0.4, seed=4)
    entries = int(np.count_nonzero(stored))
    result = run(SOFTMAX, {"A": np.where(stored, stored, np.float32("-inf"))}, line, engine, ff.Schedule.fuse("full"))
    assert bytes_of(result) == {
        ("A", "pos", "read"): (WORD * 2 * 10, once(11, line)[1]),
        ("A", "crd", "read"): once(entries, line),
        ("A", "val", "read"): once(entries, line),
        ("Y", "pos", "write"): once(11, line),
        ("Y", "crd", "write"): once(entries, line),
        ("Y", "val", "write"): once(entries, line),
    }


TRANSPOSED = "tensor A[20, 20] csr\nY[i, j] = A[i, j] + A[j, i]\noutput Y\n"


@ENGINES
@LINES
def test_a_permuted_copy_costs_its_cycles_and_bytes(line: int, engine: Engine) -> None:
    """No order reads A by rows and by columns: a copy is made, whose region reads A and writes it, which the next one reads."""
    a = sparse(20, 20, 0.2, seed=5)
    a[:, 7] = 0
    entries, columns = int(np.count_nonzero(a)), int(np.count_nonzero(a.any(0)))
    result = run(TRANSPOSED, {"A": a}, line, engine)
    np.testing.assert_array_equal(result.outputs["Y"], a + a.T)
    copy, rest = result.regions
    assert bytes_of(result) == {
        ("A", "pos", "read"): (WORD * 2 * 20, once(21, line)[1]),
        ("A", "crd", "read"): once(entries, line),
        ("A", "val", "read"): once(entries, line),
        # the columns that are not empty, then the entries of each
        (copy.name, "pos", "write"): tuple(map(sum, zip(once(2, line), once(columns + 1, line), strict=True))),
        (copy.name, "crd", "write"): tuple(map(sum, zip(once(columns, line), once(entries, line), strict=True))),
        (copy.name, "val", "write"): once(entries, line),
    }
    assert {kind for name, kind, direction in bytes_of(result, 1) if (name, direction) == (copy.name, "read")} == {
        "pos",
        "crd",
        "val",
    }
    (permute,) = (node for node in copy.simulation.nodes if node.op == "permute")
    assert copy.cycles > permute.last > entries
    assert result.cycles == copy.cycles + rest.cycles
