"""The scratchpad: when a word is there, what a run does with it, and that both simulators say the same of it."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scratchpads
from engines import LIMITS, differences, on_engine, on_reference
from memories import at_memory, contradictions
from random_graphs import Case, Size, random_case

from fuseflow.errors import GraphError, MachineError, SimulationError
from fuseflow.memory.memory import Memory
from fuseflow.memory.models import Dram
from fuseflow.memory.scratchpad import MemoryWithScratchpad
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.settings import FixedMemory
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Simulation, load_machine, simulate
from fuseflow.sim.engine.traced_run import trace as trace_on_engine
from fuseflow.sim.events.critical_path import critical_path
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.traced_run import trace as trace_on_reference
from fuseflow.sim.signature import signature
from fuseflow.tensors import Format, pack

CASES: tuple[tuple[Size, int], ...] = (
    *(("small", seed) for seed in range(9000, 9012)),
    *(("medium", seed) for seed in range(9012, 9020)),
    *(("large", seed) for seed in (9020, 9023, 9026, 9029)),
)


def placed(size: Size, seed: int) -> Case:
    return scratchpads.in_graph(at_memory(random_case(seed, size), seed), seed)


def served(requests: list[tuple[int, int, int]], ports: int, settings: Scratchpad) -> dict[int, list[int]]:
    """The cycles of the answers of each port, by rules that are written down once more: `requests` are cycle, port and address."""
    queue = sorted(requests, key=lambda request: (request[0], (request[1] - request[0]) % ports))
    busy: dict[tuple[int, int], int] = defaultdict(int)  # accesses of a bank that start in a cycle
    first: dict[int, int] = defaultdict(int)  # before it, the ports of a bank are taken
    answers: dict[int, list[int]] = defaultdict(list)
    for cycle, port, address in queue:
        bank = address // settings.bytes_a_cycle % settings.banks
        start = max(cycle, first[bank])
        while busy[bank, start] == settings.ports:
            start += 1
        first[bank] = start
        busy[bank, start] += 1
        answers[port].append(max([start + settings.latency, *answers[port][-1:]]))
    return answers


@pytest.mark.parametrize("seed", range(12))
def test_banks_serve_requests_in_the_order_in_which_they_arrive(seed: int) -> None:
    rng = random.Random(seed)
    settings, ports = scratchpads.random_scratchpad(rng), rng.randint(1, 40)
    on_chip = [rng.random() < 0.7 for _ in range(ports)]
    requests, cycles = list[tuple[int, int, int]](), [0] * ports
    for _ in range(400):
        port = rng.randrange(ports)
        cycles[port] += rng.choice((0, 1, 1, 2, 5))
        requests.append((cycles[port], port, settings.bytes_a_cycle * rng.randrange(64)))
    requests.sort(key=lambda request: request[0])
    expected = served([request for request in requests if on_chip[request[1]]], ports, settings)
    alone = Memory(Dram(channels=1), ports)
    for window in (1, 2, 17):
        memory = MemoryWithScratchpad(Dram(channels=1), settings, on_chip)
        step, waiting, now = min(window, memory.lookahead), list(requests), 0
        while waiting or (memory.ports["answered"] < memory.ports["issued"]).any():
            now += step
            while waiting and waiting[0][0] < now:
                cycle, port, address = waiting.pop(0)
                size = settings.bytes_a_cycle if on_chip[port] else 64
                memory.issue(port, address, size, False, cycle)
                if window == 1 and not on_chip[port]:
                    alone.issue(port, address, size, False, cycle)
            memory.advance(now)
        if window == 1:
            alone.drain()
        for port in range(ports):
            issued = int(memory.ports[port]["issued"])
            found = [memory.answer_cycle(port, k) for k in range(issued)]
            assert found == (expected[port] if on_chip[port] else [alone.answer_cycle(port, k) for k in range(issued)])


@pytest.mark.parametrize("part", range(4))
def test_both_simulators_agree_on_random_graphs(part: int) -> None:
    seen = 0
    for size, seed in CASES[part::4]:
        case = placed(size, seed)
        expected = on_reference(case)
        lines = [*differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])), *contradictions(expected)]
        assert not lines, f"seed {seed}: {lines[:5]}"
        seen += isinstance(expected, Outcome)
    assert seen >= 2


@pytest.mark.parametrize("part", range(2))
def test_the_critical_path_is_the_same_on_both_simulators(part: int) -> None:
    for size, seed in CASES[part:16:2]:
        case = placed(size, seed)
        expected = on_reference(case)
        if isinstance(expected, Outcome):
            given = case.graph, case.tensors, case.machine
            slow = critical_path(partial(trace_on_reference, *given))
            assert expected.cycles == sum(step.cycles for step in slow.steps), f"seed {seed}"
            assert critical_path(partial(trace_on_engine, *given, limits=LIMITS[seed % len(LIMITS)])) == slow, f"seed {seed}"


def test_values_and_elements_are_those_of_a_run_without_places() -> None:
    ran = 0
    for size, seed in CASES:
        case = placed(size, seed)
        tensors = tuple(replace(tensor, scratchpad="") for tensor in case.graph.tensors)
        expected = on_reference(replace(case, graph=replace(case.graph, tensors=tensors)))
        found = on_reference(case)
        if not (isinstance(expected, Outcome) and isinstance(found, Outcome)):
            continue
        ran += 1
        for name, writer in found.written.items():
            assert np.array_equal(writer.values, expected.written[name].values, equal_nan=True)
        assert found.elements == expected.elements
    assert ran > 12


SUM = """graph sum
tensor X[{rows}, 16]  dense{place}
tensor Y[{rows}]  dense{result}
output Y

root = root()
X_i = scan(root) X.0 sequential
X_j = scan(X_i.ref) X.1 sequential
X_val = load(X_j.ref) X sequential
sum_j = reduce(X_val) sum
write_Y_i = write(X_i.crd) Y.0
write_Y_val = write(sum_j) Y.vals
"""


def run_sum(rows: int, place: str = "", result: str = "", **scratchpad: object) -> Simulation:
    graph = parse(SUM.format(rows=rows, place=place, result=result))
    verify(graph)
    settings = {"bytes": 1 << 20, "banks": 4, "latency": 3, "bytes_a_cycle": 16, **scratchpad}
    machine = load_machine("rda").model_copy(update={"scratchpad": Scratchpad.model_validate(settings)})
    values = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
    tensors = {"X": pack(values, graph.declared["X"].format)}
    simulations = [simulate(graph, tensors, machine, engine=engine) for engine in ("reference", "fast")]
    first, second = simulations
    assert (first.cycles, first.memory, first.nodes) == (second.cycles, second.memory, second.nodes)
    assert first.outputs["Y"].to_dense().tolist() == values.sum(axis=1).tolist()
    return first


def test_every_byte_of_a_moved_tensor_is_loaded_once_and_every_byte_of_a_moved_result_stored_once() -> None:
    memory = run_sum(100, " scratchpad moved", " scratchpad moved").memory
    assert memory is not None
    assert memory.transferred_bytes("read") == memory.moved_bytes("read") == 100 * 16 * 4  # 100 lines
    assert memory.transferred_bytes("write") == memory.moved_bytes("write") == 7 * 64  # of 400 bytes
    assert (memory.words("read"), memory.words("write")) == (400, 25)


def test_what_is_kept_moves_nothing() -> None:
    memory = run_sum(100, " scratchpad kept", " scratchpad kept").memory
    assert memory is not None and memory.moved_bytes() == 0 and memory.bus_bytes == 0
    assert (memory.words("read"), memory.words("write")) == (400, 25)


def test_a_run_takes_no_less_than_its_load_its_words_and_its_store() -> None:
    kept, moved = run_sum(100, " scratchpad kept", " scratchpad kept"), run_sum(100, " scratchpad moved", " scratchpad moved")
    assert moved.cycles > kept.cycles + 2 * 36  # both wait for an idle memory once
    one = run_sum(400, " scratchpad kept", "", banks=1, bytes_a_cycle=4)
    assert one.bound >= 400 * 16 and one.cycles >= one.bound


SLOW_BANKS = Scratchpad(bytes=1 << 12, banks=4, latency=10, bytes_a_cycle=16)


def firsts(text: str, values: dict[str, np.ndarray], prefetch: int) -> dict[str, int]:
    """The cycle in which each node first fires, in both simulators: all latencies are 1, the memory answers after 20 cycles and a bank of
    the scratchpad after 10."""
    graph = parse(text)
    memory = FixedMemory(latency=20, prefetch=prefetch)
    machine = load_machine("ideal").model_copy(update={"memory": memory, "scratchpad": SLOW_BANKS})
    tensors = {name: pack(array, graph.declared[name].format) for name, array in values.items()}
    first, second = (simulate(graph, tensors, machine, engine=engine).nodes for engine in ("reference", "fast"))
    assert first == second
    return {node.name: node.first for node in first}


@pytest.mark.parametrize(("place", "prefetch", "root", "load"), [("kept", 8, 0, 10), ("moved", 8, 20, 30), ("moved", 0, 20, 33)])
def test_nothing_is_fetched_ahead_before_it_is_loaded(place: str, prefetch: int, root: int, load: int) -> None:
    """Two lines are loaded in cycle 0, and are there in cycle 20. Then the root fires, and eight words are fetched ahead, the first of
    which is there in cycle 30. What was in the scratchpad before is fetched from cycle 0 on. Where nothing is fetched ahead, the first
    reference reaches the load in cycle 23."""
    made = firsts(SUM.format(rows=2, place=f" scratchpad {place}", result=""), {"X": np.ones((2, 16), np.float32)}, prefetch)
    assert (made["root"], made["X_val"]) == (root, load)


@pytest.mark.parametrize(("place", "first"), [("kept", 11), ("moved", 31)])
def test_a_level_is_kept_once_it_is_loaded(place: str, first: int) -> None:
    """The locate names the first coordinate of its level in cycle 0, or in cycle 20, when the lines of `A` are loaded. It is asked for in
    the next cycle, and is kept 10 cycles later."""
    text = f"""graph sum
tensor A[4, 2]  (compressed, compressed) scratchpad {place}
tensor M[3, 4]  csr
tensor Y[3]  dense
output Y

root = root()
M_i = scan(root) M.0
M_j = scan(M_i.ref) M.1
A_j = locate(M_j.crd) A.0
A_k = scan(A_j) A.1
A_val = load(A_k.ref) A
inner = reduce(A_val) sum
outer = reduce(inner) sum
write_Y_i = write(M_i.crd) Y.0
write_Y_val = write(outer) Y.vals
"""
    assert firsts(text, {"A": np.ones((4, 2)), "M": np.eye(3, 4)}, 0)["A_j"] == first


@pytest.mark.parametrize("place", ["", " scratchpad kept", " scratchpad moved"])
def test_lines_that_nothing_needs_are_not_fetched(place: str) -> None:
    """Of the 64 stored elements of a padded tensor one is read. The fetch goes one line or word ahead of it and stays there, and the run
    ends."""
    text = SUM.replace("tensor X[{rows}, 16]  dense", "tensor X[{rows}, 1]  (nm(8:8), nm(8:8))")
    made = firsts(text.format(rows=1, place=place, result=""), {"X": np.ones((1, 1), np.float32)}, 1)
    assert made["X_val"] > 0


def test_a_tensor_that_is_too_large_is_refused_with_both_sizes() -> None:
    with pytest.raises(SimulationError, match="`X` has 6,400 bytes, and the scratchpad 4,096") as caught:
        run_sum(100, " scratchpad moved", "", bytes=4096)
    assert caught.value.hint == "leave it in the memory, or give the machine a larger scratchpad"  # a graph has no tiles


def test_a_machine_without_a_scratchpad_refuses_a_place() -> None:
    graph = parse(SUM.format(rows=4, place=" scratchpad moved", result=""))
    tensors = {"X": pack(np.ones((4, 16), np.float32), graph.declared["X"].format)}
    with pytest.raises(MachineError, match="`X` is placed in the scratchpad, and the machine has none"):
        simulate(graph, tensors, load_machine("rda"))


@pytest.mark.parametrize("also", ["resident", "buffer 64", "preload 2"])
def test_a_tensor_in_the_scratchpad_is_in_no_other_memory(also: str) -> None:
    with pytest.raises(GraphError, match="tensor `X` lies in the scratchpad and"):
        verify(parse(SUM.format(rows=4, place=f" {also} scratchpad moved", result="")))


def test_graphs_with_other_places_are_other_graphs() -> None:
    tensors = {"X": pack(np.ones((4, 16), np.float32), Format.dense(2))}
    made = {
        signature(parse(SUM.format(rows=4, place=place, result="")), tensors)
        for place in ("", " scratchpad moved", " scratchpad kept")
    }
    assert len(made) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scratchpad.banks": 4}, "the key `scratchpad.bytes` is missing"),
        ({"scratchpad": "1MB", "scratchpad.banks": 0}, "must be a whole number of banks, 1 to 4,096"),
        ({"scratchpad": "1MB", "scratchpad.bytes_a_cycle": 24}, "must be a power of two of bytes"),
        ({"scratchpad": "many"}, "`many` is no number of bytes"),
        ({"scratchpad": "1MB", "scratchpad.bank": 4}, "unknown key `scratchpad.bank`"),
    ],
)
def test_impossible_settings(settings: dict[str, str | int], message: str) -> None:
    with pytest.raises(MachineError, match=message):
        load_machine("rda", settings)


def test_a_file_may_have_the_bytes_alone() -> None:
    machine = load_machine("rda", {"scratchpad": "1MB"})
    assert machine.scratchpad == Scratchpad(bytes=1 << 20)
    assert "scratchpad" not in load_machine("rda").settings
