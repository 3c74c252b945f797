"""Counts equal simulations, number for number: random graphs of all primitives, lanes and tiles, and random programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from bitmaps import in_graph
from hypothesis import HealthCheck, given, settings
from random_graphs import random_case
from random_programs import Case, cases

from fuseflow.errors import FusionError
from fuseflow.estimate import CountMemo, Work, count_work, measure_statistics
from fuseflow.estimate.counted.patterns import Pattern, tensor_pattern
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Drop, Graph, Permute
from fuseflow.samml.text import parse
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, Simulation, load_machine, simulate
from fuseflow.tensors import Format, Tensor, pack

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


@pytest.mark.parametrize("seeds", [range(k, k + 40) for k in range(0, 120, 40)], ids=str)
def test_random_graphs(seeds: range):
    exact = 0
    for seed in seeds:
        case = random_case(seed)
        graph, machine = replace(case.graph, depths=()), case.machine.model_copy(update={"fifo_depth": None})
        work = counted(graph, case.tensors, machine)
        decided = any(isinstance(node, Drop) and node.value is not None for node in graph.nodes)
        assert work.exact != decided, f"seed {seed}"
        if work.exact:
            exact += 1
            assert not differences(work, simulate(graph, case.tensors, machine)), f"seed {seed}"
    assert exact > 0.7 * len(seeds)


@pytest.mark.parametrize("seeds", [range(k, k + 40) for k in range(2000, 2080, 40)], ids=str)
def test_random_graphs_with_bitmaps(seeds: range):
    """Bits, ranks and coordinates that a locate does not find are counted, too."""
    exact = 0
    for seed in seeds:
        case = in_graph(random_case(seed), seed)
        graph, machine = replace(case.graph, depths=()), case.machine.model_copy(update={"fifo_depth": None})
        work = counted(graph, case.tensors, machine)
        if work.exact:
            exact += 1
            assert not differences(work, simulate(graph, case.tensors, machine)), f"seed {seed}"
    assert exact > 0.7 * len(seeds)


@pytest.mark.parametrize("machine", ["ideal", "comal"])
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(case=cases(max_einsums=3))
def test_random_programs(machine: str, case: Case):
    """Each region is counted on the tensors that the regions before it were counted to write."""
    try:
        _, regions = lower(case.program, Schedule.fuse("none"), case.tensors)
    except FusionError:
        return
    hardware, memo = load_machine(machine), CountMemo()
    memory = dict(case.tensors)
    patterns = {name: tensor_pattern(tensor) for name, tensor in memory.items()}
    statistics = {name: measure_statistics(tensor) for name, tensor in memory.items()}
    for region in regions:
        if machine == "comal" and any(isinstance(node, Permute) for node in region.graph.nodes):
            return  # it has no times for them
        run = simulate(region.graph, {name: memory[name] for name in region.graph.inputs}, hardware)
        work = count_work(region.graph, hardware, statistics, patterns, memo)
        assert not (work.exact and differences(work, run))
        memory |= run.outputs
        patterns |= work.patterns if work.exact else {name: tensor_pattern(tensor) for name, tensor in run.outputs.items()}
        statistics |= work.statistics


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


@pytest.mark.parametrize("a", ["csr", "coo", "dcsr", "dense"])
def test_formats_and_empty_rows(a: str):
    graph = parse(SPMM.format(a=Format.parse(a, 2), x=Format.parse("csr", 2)))
    tensors = {
        "A": pack([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4]], Format.parse(a, 2)),
        "X": pack([[1, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]], Format.parse("csr", 2)),
    }
    tensors = {name: replace(tensor, values=tensor.values.astype("f4")) for name, tensor in tensors.items()}
    work = counted(graph, tensors)
    run = simulate(graph, tensors, IDEAL)
    assert work.exact and not differences(work, run)
    assert (
        stored(work.patterns["Y"])
        == stored(tensor_pattern(run.outputs["Y"]))
        == list(map(list, run.outputs["Y"].coordinates().T))
    )


def test_a_count_that_takes_too_much_is_estimated_and_says_so():
    graph = parse(SPMM.format(a="csr", x="csr"))
    a = [[1.0, 0, 2, 0], [1, 1, 0, 0], [0, 0, 1, 1]]
    x = [[1.0, 0, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]
    tensors = {"A": pack(a, Format.parse("csr", 2)), "X": pack(x, Format.parse("csr", 2))}
    tensors = {name: replace(tensor, values=tensor.values.astype("f4")) for name, tensor in tensors.items()}
    work = counted(graph, tensors, memo=CountMemo(budget=0))
    assert not work.exact and {node.name for node in work.nodes if node.exact} >= {"root", "A_i", "A_k"}
    assert work.operators["mul"] == pytest.approx(simulate(graph, tensors, IDEAL).operators["mul"], rel=0.2)


def test_what_was_counted_is_found_again():
    graph, memo = parse(SPMM.format(a="csr", x="csr")), CountMemo()
    tensors = {name: pack([[1.0, 0, 2, 0]] * 3, Format.parse("csr", 2)) for name in "A"}
    tensors["X"] = pack([[1.0, 0, 0, 0, 1]] * 4, Format.parse("csr", 2))
    patterns = {name: tensor_pattern(tensor) for name, tensor in tensors.items()}
    statistics = {name: measure_statistics(tensor) for name, tensor in tensors.items()}
    first, second = (count_work(graph, IDEAL, statistics, patterns, memo) for _ in range(2))
    assert first.operators == second.operators
    assert first.patterns["Y"] is second.patterns["Y"]
