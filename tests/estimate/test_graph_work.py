"""Counts equal simulations, number for number: random graphs of all primitives, lanes and tiles, and random programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import nm_levels
import pytest
from bitmaps import in_graph
from counted_graphs import IDEAL, SPMM, counted, differences, stored
from hypothesis import HealthCheck, given, settings
from random_graphs import Case as Drawn
from random_graphs import random_case
from random_programs import Case, cases

from fuseflow.costs import measure_statistics
from fuseflow.errors import FusionError
from fuseflow.estimate import CountMemo, count_work
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.lower.program import lower
from fuseflow.samml.nodes import Drop, Permute, Select
from fuseflow.samml.text import parse
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine, simulate
from fuseflow.tensors import Format, pack


@pytest.mark.parametrize(
    ("levels", "first"),
    [
        (None, 0),
        (None, 40),
        (None, 80),
        (in_graph, 2000),
        (in_graph, 2040),
        (nm_levels.in_graph, 3000),
        (nm_levels.in_graph, 3040),
    ],
)
def test_random_graphs(levels: Callable[[Drawn, int], Drawn] | None, first: int):
    """Bits, ranks and coordinates that a locate does not find are counted, too. Pads are counted as entries, offsets in bytes, and
    what lies outside the size not at all."""
    exact = 0
    for seed in range(first, first + 40):
        case = random_case(seed) if levels is None else levels(random_case(seed), seed)
        graph, machine = replace(case.graph, depths=()), case.machine.model_copy(update={"fifo_depth": None})
        work = counted(graph, case.tensors, machine)
        if levels is None:
            decided = any(isinstance(node, Drop) and node.value is not None for node in graph.nodes)
            assert work.exact != decided, f"seed {seed}"
        if work.exact:
            exact += 1
            assert not differences(work, simulate(graph, case.tensors, machine)), f"seed {seed}"
    assert exact > 0.7 * 40


@pytest.mark.parametrize("seeds", [range(k, k + 40) for k in range(3000, 3080, 40)], ids=str)
def test_random_graphs_with_selections(seeds: range):
    """A select of one level fires as often as is counted where its inputs are counted, although values decide what it keeps."""
    counts = 0
    for seed in seeds:
        case = random_case(seed, select=True)
        graph, machine = replace(case.graph, depths=()), case.machine.model_copy(update={"fifo_depth": None})
        work, run = counted(graph, case.tensors, machine), simulate(graph, case.tensors, machine)
        assert not work.exact
        known = {node.name for node in work.nodes if node.exact}
        for node, number, simulated in zip(graph.nodes, work.nodes, run.nodes, strict=True):
            exact = number.exact or (isinstance(node, Select) and node.levels == 1 and {p.node for p in node.inputs} <= known)
            if exact:
                counts += isinstance(node, Select)
                assert (number.firings, number.occupied) == (simulated.firings, simulated.occupied), f"seed {seed}, {node}"
    assert counts > len(seeds) // 2


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
