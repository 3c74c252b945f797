"""Reuse buffers of ports: which requests are hits, when they are answered, and that both simulators say the same of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import reuse_buffers
from engines import LIMITS, differences, on_engine, on_reference
from memories import at_memory, contradictions
from random_graphs import Case, Size, random_case

from fuseflow.errors import GraphError, MachineError
from fuseflow.memory.buffer_assignment import buffered_ports
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram, FixedLatency
from fuseflow.samml.text import parse, show
from fuseflow.samml.verify import verify
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.signature import signature

CASES: tuple[tuple[Size, int], ...] = (
    *(("medium", seed) for seed in (7001, 7003, 7023, 7081, 7129, 7137, 7185, 7187, 7203, 7217)),
    *(("large", seed) for seed in (7005, 7151, 7201, 7231, 7305, 7321, 7361, 7393)),
)
"""Random graphs, of which most ask for a line again that is in a buffer."""
LINE = 64


def buffered(size: Size, seed: int) -> Case:
    return reuse_buffers.in_graph(at_memory(random_case(seed, size), seed), seed)


def test_a_hit_is_answered_in_the_next_cycle_and_moves_nothing() -> None:
    memory = Memory(FixedLatency(20, LINE, 1), ports=1)
    memory.add_buffer(0, 2)
    for line, cycle in ((5, 0), (5, 30), (6, 40), (5, 41), (7, 70), (6, 100), (5, 130)):
        memory.issue(0, LINE * line, LINE, False, cycle)
        memory.advance(cycle + 1)
    memory.drain()
    answers = [memory.answer_cycle(0, request) for request in range(7)]
    # 5 is fetched, found, and found while 6 is on its way, whose answer it waits for; 7 replaces 6, which replaces 5
    assert answers == [20, 31, 60, 60, 90, 120, 150]
    (port,) = memory.statistics()
    assert (port.requests, port.hits, port.moved_bytes, port.latency) == (7, 2, 5 * LINE, 20)


def test_a_second_request_for_a_line_on_its_way_waits_for_the_first() -> None:
    memory = Memory(FixedLatency(20, LINE, 1), ports=1)
    memory.add_buffer(0, 4)
    for cycle in range(3):
        memory.issue(0, 0, LINE, False, cycle)
    memory.drain()
    assert [memory.answer_cycle(0, request) for request in range(3)] == [20, 20, 20]
    assert memory.statistics()[0].hits == 2


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 64, 65, 300])
def test_hits_are_those_of_an_ordered_dictionary(lines: int) -> None:
    """Lines near each other, far apart (which share buckets), and all over the memory."""
    rng = random.Random(lines)
    asked = [
        rng.choice((rng.randrange(2 * lines), rng.randrange(12) << rng.choice((6, 9, 20)), rng.randrange(1 << 24)))
        for _ in range(3000)
    ]
    memory = Memory(FixedLatency(3, LINE, 1), ports=1)
    memory.add_buffer(0, lines)
    for cycle, line in enumerate(asked):
        memory.issue(0, LINE * line, LINE, False, cycle)
    memory.drain()
    assert memory.statistics()[0].hits == reuse_buffers.hits(asked, lines) > 0
    assert memory.statistics()[0].transactions == len(asked) - reuse_buffers.hits(asked, lines)


@pytest.mark.parametrize("window", [1, 16, 17])
def test_windows_change_nothing(window: int) -> None:
    """Of every length up to the look-ahead: the answers of ports that write, have a buffer, or have none."""
    results = []
    for step in (window, 5):
        rng, memory = random.Random(4), Memory(Dram(channels=1), ports=3)
        memory.add_buffer(0, 3)
        memory.add_buffer(1, 40)
        due = [(cycle, port, rng.randrange(60)) for port in range(3) for cycle in sorted(rng.sample(range(4000), 900))]
        end = 0
        for cycle, port, line in sorted(due):
            while cycle >= end:
                memory.advance(end)
                end += step
            memory.issue(port, LINE * line, LINE, port == 2, cycle)
        memory.drain()
        results.append([[memory.answer_cycle(port, k) for k in range(900)] for port in range(3)] + [memory.statistics()])
    assert results[0] == results[1]


def test_both_simulators_agree_on_random_graphs() -> None:
    seen = 0
    for size, seed in CASES:
        case = buffered(size, seed)
        expected = on_reference(case)
        lines = [*differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])), *contradictions(expected)]
        assert not lines, f"seed {seed}: {lines[:5]}"
        if isinstance(expected, Outcome) and expected.memory is not None:
            seen += sum(port.hits > 0 for _, port in expected.memory.ports)
    assert seen >= 14


def test_hits_follow_from_the_lines_that_a_run_without_buffers_asks_for() -> None:
    """A port asks for the same lines in the same order whatever the memory does, so an ordered dictionary that sees those of a run without
    buffers says how many are hits. The answer of each is the next cycle or that of the request before it, whichever is later."""
    seen = 0
    for size, seed in CASES:
        case = buffered(size, seed)
        plain = replace(case, graph=replace(case.graph, tensors=tuple(replace(t, buffer=0) for t in case.graph.tensors)))
        expected, _, without = reuse_buffers.traced(plain)
        outcome, controller, requests = reuse_buffers.traced(case)
        if not (isinstance(expected, Outcome) and isinstance(outcome, Outcome)):
            continue
        for port, of in zip(controller.ports, controller.memory.statistics(), strict=True):  # type: ignore[attr-defined]
            lines = [line for line, _, _ in requests[port.node, port.kind]]
            assert lines == [line for line, _, _ in without[port.node, port.kind]]
            assert of.hits == (reuse_buffers.hits(lines, port.buffer) if port.buffer else 0)
            seen += of.hits > 0
            held: list[int] = []
            before = 0
            for line, cycle, answer in requests[port.node, port.kind] if port.buffer else ():
                if line in held[-port.buffer :]:
                    assert answer == max(before, cycle + 1), (seed, port)
                    held.remove(line)
                else:
                    assert answer >= max(before, cycle + 1)
                held, before = [*held, line], answer
    assert seen >= 8


def test_outputs_and_resident_tensors_have_no_buffer() -> None:
    graph = parse(PRODUCT.format(buffer=""))
    verify(graph)
    for name, changes, words in (
        ("Y", {"buffer": 64}, "output `Y` has a reuse buffer"),
        ("A", {"buffer": -1}, "a reuse buffer of -1 bytes"),
        ("A", {"buffer": 64, "resident": True}, "64 bytes and is resident"),
    ):
        wrong = replace(graph, tensors=tuple(replace(t, **changes) if t.name == name else t for t in graph.tensors))
        with pytest.raises(GraphError, match=words):
            verify(wrong)


PRODUCT = """
graph product
tensor A[4, 600]  csr
tensor X[600]  dense{buffer}
tensor Y[4]  dense
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
X_k = locate(A_k.crd) X.0
A_val = load(A_k.ref) A sequential
X_val = load(X_k) X
mul = alu(A_val, X_val) mul N->0,N->0
sum_k = reduce(mul) sum
write_i = write(A_i.crd) Y.0
write_val = write(sum_k) Y.vals
"""


def test_a_buffer_is_in_whole_lines_and_no_larger_than_its_array() -> None:
    def ports_of(size: int, line: int = LINE) -> Any:
        return buffered_ports(parse(PRODUCT.format(buffer=f" buffer {size}")), line)

    assert ports_of(200) == {("X_val", ("X", -1, "val")): 3}
    assert ports_of(1 << 40) == {("X_val", ("X", -1, "val")): 38}  # 600 values of 4 bytes
    assert not buffered_ports(parse(PRODUCT.format(buffer="")), LINE)
    with pytest.raises(MachineError, match="the reuse buffer of `X` has 63 bytes, and a line of the memory has 64") as caught:
        ports_of(63)
    assert "64 bytes or more" in caught.value.hint


def test_an_array_that_is_read_in_order_has_no_buffer() -> None:
    graph = parse(PRODUCT.format(buffer=""))
    graph = replace(graph, tensors=tuple(replace(t, buffer=4096 * (t.name == "A")) for t in graph.tensors))
    assert not buffered_ports(graph, LINE)


def test_graphs_with_other_buffers_are_other_graphs() -> None:
    graphs = [parse(PRODUCT.format(buffer=words)) for words in ("", " buffer 64", " buffer 128")]
    assert len({repr(signature(graph, {})) for graph in graphs}) == len({graph.structure.key for graph in graphs}) == 3
    assert all(parse(show(graph)) == graph for graph in graphs)
