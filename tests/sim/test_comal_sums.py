"""Sums of lists without lists in them, on machine `comal`: the cycles that the public simulator took, on both simulators and counted.

That simulator gives a sum for every stop. Each graph here was run there as `--emit proto` writes it, with these very tensors.
"""

from __future__ import annotations

import numpy as np
import pytest
from engines import LIMITS, differences, on_engine, on_reference
from random_graphs import Case

from fuseflow.costs import measure_statistics
from fuseflow.estimate import CountMemo, count_work
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.machine.comal import readers_of_sums
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.sim.engine import network_layout
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.tensors import Tensor, pack

COMAL = load_machine("comal")
GRAPH = """graph sums
tensor A[2, 3, 4]  ({rows}, compressed, compressed) f64
{result}
output Y
root = root()
i = scan(root) A.0
j = scan(i.ref) A.1
k = scan(j.ref) A.2
v = load(k.ref) A
r = reduce(v) sum
{nodes}
"""
SCALAR = "tensor Y[]  () f64"
FOLDED = "s = reduce({}) sum\nt = reduce(s) sum\nY_v = write(t) Y.vals"
KINDS = {
    "reductions": (SCALAR, FOLDED.format("r")),
    "an operator": (SCALAR, "a = alu(r, r) mul N->0,N->0\n" + FOLDED.format("a")),
    "two operators": (SCALAR, "a = alu(r) mul N->0,2\nb = alu(a) mul N->0,2\n" + FOLDED.format("b")),
    "rows": ("tensor Y[2]  (compressed) f64", "s = reduce(r) sum\nY_i = write(i.crd) Y.0\nY_v = write(s) Y.vals"),
    "a writer": ("tensor Y[2, 3]  dcsr f64", "Y_i = write(i.crd) Y.0\nY_j = write(j.crd) Y.1\nY_v = write(r) Y.vals"),
    "a repeat": (
        SCALAR,
        "x = repeat(r, k.crd)\na = alu(x, v) mul N->0,N->0\nu = reduce(a) sum\n" + FOLDED.format("u"),
    ),
}
CELLS = {"none": (), "one": ((1, 2, 3),), "first": ((0, 0, 2), (0, 2, 1)), "both": ((0, 0, 0), (0, 0, 1), (1, 1, 1))}
POINTS = (("compressed", "none"), ("dense", "none"), ("dense", "one"), ("dense", "first"), ("dense", "both"))
CYCLES = {
    "reductions": (13, 15, 15, 17, 16),
    "an operator": (15, 17, 17, 19, 18),
    "two operators": (15, 17, 17, 19, 18),
    "rows": (11, 13, 13, 15, 14),
    "a writer": (9, 10, 11, 12, 12),
    "a repeat": (18, 20, 21, 24, 23),
}
"""Of the public simulator, by kind and point: how the rows of A are stored, and which of its cells hold a value. Its writer writes the
sums of lists without lists in them, too, where no reduction takes them."""


def sums(kind: str, rows: str, cells: str) -> tuple[n.Graph, dict[str, Tensor]]:
    result, nodes = KINDS[kind]
    graph = parse(GRAPH.format(rows=rows, result=result, nodes=nodes))
    verify(graph)
    values = np.zeros((2, 3, 4))
    for cell in CELLS[cells]:
        values[cell] = 2.0
    return graph, {"A": pack(values, graph.declared["A"].format)}


@pytest.mark.parametrize("kind", KINDS)
def test_cycles_of_the_public_simulator(kind: str) -> None:
    for (rows, cells), cycles in zip(POINTS, CYCLES[kind], strict=True):
        case = Case(*sums(kind, rows, cells), COMAL)
        expected = on_reference(case)
        assert isinstance(expected, Outcome)
        assert expected.cycles == cycles, (rows, cells)
        for limits in LIMITS:
            assert not list(differences(case, expected, on_engine(case, limits)))


@pytest.mark.parametrize("kind", KINDS)
def test_all_else_is_as_on_every_machine(kind: str) -> None:
    """The values, the streams and the FLOPs know nothing of sums that are not there; the estimate counts each firing."""
    for rows, cells in POINTS:
        graph, tensors = sums(kind, rows, cells)
        ours, ideal = (simulate(graph, tensors, machine, record=True, check=True) for machine in (COMAL, load_machine("ideal")))
        for port, recording in ideal.streams.items():
            np.testing.assert_equal(ours.streams[port].tokens, recording.tokens)
        assert (ours.operators, ours.traffic) == (ideal.operators, ideal.traffic)
        statistics = {name: measure_statistics(tensor) for name, tensor in tensors.items()}
        work = count_work(
            graph, COMAL, statistics, {name: tensor_pattern(tensor) for name, tensor in tensors.items()}, CountMemo()
        )
        assert work.exact
        assert [node.firings for node in work.nodes] == [node.firings for node in ours.nodes]


def test_who_reads_sums() -> None:
    graph, _ = sums("a repeat", "dense", "none")
    assert readers_of_sums(graph) == {"s", "t", "Y_v"}  # not `a`: a repeat takes such a sum together with the stop
    graph, _ = sums("two operators", "dense", "none")
    assert readers_of_sums(graph) == {"a", "b", "s", "t", "Y_v"}


def test_a_missing_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(*sums("reductions", "dense", "first"), COMAL)
    monkeypatch.setattr(network_layout, "readers_of_sums", lambda graph: frozenset())
    ours = on_engine(case, LIMITS[0])
    assert isinstance(ours, Outcome) and ours.cycles == 16
    assert list(differences(case, on_reference(case), ours))
