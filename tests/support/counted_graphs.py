"""Graphs that are counted, and what differs from their runs."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.costs import measure_statistics
from fuseflow.estimate import CountMemo, Work, count_work
from fuseflow.estimate.counted.patterns import Pattern, tensor_pattern
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Machine, Simulation, load_machine
from fuseflow.tensors import Tensor

IDEAL = load_machine("ideal")


def counted(graph: Graph, tensors: Mapping[str, Tensor], machine: Machine = IDEAL, memo: CountMemo | None = None) -> Work:
    statistics = {name: measure_statistics(tensor) for name, tensor in tensors.items()}
    patterns = {name: tensor_pattern(tensor) for name, tensor in tensors.items()}
    return count_work(graph, machine, statistics, patterns, memo or CountMemo())


def differences(work: Work, run: Simulation) -> list[object]:
    """Return the counts that differ from those of a simulation."""
    wrong: list[object] = [] if dict(work.operators) == dict(run.operators) else [(work.operators, run.operators)]
    counted_bytes = {(t.tensor, t.kind, t.direction): t.bytes for t in work.traffic}
    simulated = {(t.tensor, t.kind, t.direction): t.bytes for t in run.traffic}
    wrong += [key for key in {**counted_bytes, **simulated} if counted_bytes.get(key) != simulated.get(key)]
    for node, other in zip(work.nodes, run.nodes, strict=True):
        if (node.firings, node.occupied) != (other.firings, other.occupied):
            wrong.append((node, other))
    return wrong


SPMM = """graph g
tensor A[3, 4]  {a}
tensor X[4, 5]  {x}
tensor Y[3, 5]  dcsr
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
rep = repeat(root, A_i.crd)
rep2 = repeat(rep, A_k.crd)
loc = locate(A_k.crd, rep2) X.0
X_j = scan(loc) X.1
A_val = load(A_k.ref) A
X_val = load(X_j.ref) X
rep3 = repeat(A_val, X_j.crd)
mul = alu(rep3, X_val) mul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
drop = drop(A_i.crd, acc.crd, acc.val)
w0 = write(drop.crd0) Y.0
w1 = write(drop.crd1) Y.1
w2 = write(drop.val) Y.vals
"""


def stored(pattern: Pattern, level: int = 0, fiber: int = 0) -> list[list[int]]:
    """Return the coordinates of every entry."""
    fibers, below = pattern.levels[level], pattern.below[level]
    coordinates: list[list[int]] = []
    for at in range(fibers.pos[fiber], fibers.pos[fiber + 1]):
        deeper = level + 1 < len(pattern.levels)
        inner = stored(pattern, level + 1, 0 if below is None else below[at]) if deeper else [[]]
        coordinates += [[fibers.crd[at], *rest] for rest in inner]
    return coordinates
