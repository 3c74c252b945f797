"""Resident tensors: both simulators read them in the same cycles, and never ask the memory for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines import LIMITS, differences, on_engine, on_reference
from memories import at_memory, contradictions
from random_graphs import random_case
from residents import in_graph

from fuseflow.errors import GraphError, MachineError
from fuseflow.machine.machine import Machine, UnitCycles, UnitIntervals
from fuseflow.memory.statistics import MemoryStatistics
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.sim.engine.remote_layout import RemoteLayout
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.sim.reference.remote_memory import RemoteProcesses
from fuseflow.sim.signature import signature
from fuseflow.tensors import Format, pack

SEEDS = range(9000, 9040)
PRODUCT = """
graph product
tensor A[4, 6]  csr{A}
tensor X[6]  dense{X}
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
TENSORS = {
    "A": pack(np.array([[0, 1.0, 0, 0, 2.0, 0], [0] * 6, [0, 0, 0, 0, 0, 3.0], [4.0, 0, 0, 0, 0, 0]]), Format.parse("csr", 2)),
    "X": pack(np.arange(1.0, 7.0), Format.dense(1)),
}


def product(*resident: str) -> n.Graph:
    """A sparse matrix times a vector, with these operands resident."""
    return parse(PRODUCT.format(**{name: " resident" * (name in resident) for name in ("A", "X")}))


def disagreements(seed: int) -> list[str]:
    """In what the engine differs from the reference, and what cannot be true of either."""
    case = in_graph(at_memory(random_case(seed), seed), seed)
    expected = on_reference(case)
    lines = [*differences(case, expected, on_engine(case, LIMITS[seed % len(LIMITS)])), *contradictions(expected)]
    resident = {t.name for t in case.graph.tensors if t.resident}
    if isinstance(expected, Outcome) and expected.memory is not None:
        lines += [f"asks for {port}" for port in _asked(expected.memory, resident)]
    return lines


def _asked(memory: MemoryStatistics, names: set[str]) -> set[str]:
    """The names of tensors that have a port or a place in the memory."""
    return names & {*(port.tensor for port, _ in memory.ports), *(tensor for tensor, _, _ in memory.places)}


def test_random_graphs_with_resident_tensors_agree() -> None:
    """Outputs, cycles, statistics, streams and deadlocks, at a memory that takes time."""
    for seed in SEEDS:
        assert not disagreements(seed), f"seed {seed}: {disagreements(seed)[:5]}"


@pytest.mark.parametrize("simulator", [RemoteProcesses, RemoteLayout])
@pytest.mark.parametrize("kind", [n.Scan, n.Load])
def test_a_simulator_that_asks_for_resident_tensors_is_noticed(
    simulator: Any, kind: type[n.Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule that forgets residency has no place in the memory to ask for."""
    rules = simulator.rules

    def forgetful(self: Any, local: Any) -> Any:
        plain = rules(self, local)

        def rule(node: Any, context: Any) -> Any:
            declared = {name: replace(decl, resident=False) for name, decl in context.declared.items()}
            return plain[kind](node, replace(context, declared=declared))

        return {**plain, kind: rule}

    monkeypatch.setattr(simulator, "rules", forgetful)
    engine = "reference" if simulator is RemoteProcesses else "fast"
    with pytest.raises(KeyError, match="A"):
        simulate(product("A"), TENSORS, load_machine("rda"), engine=engine)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_resident_tensor_is_read_as_at_a_memory_that_answers_at_once(engine: Any) -> None:
    """With all operands resident, only the result is moved, and the cycles are those of such a memory but for its last line."""
    rda = load_machine("rda")
    plain, resident = (simulate(product(*names), TENSORS, rda, engine=engine) for names in ((), ("A", "X")))
    at_once = simulate(product(), TENSORS, rda.model_copy(update={"memory": load_machine("ideal").memory}), engine=engine)
    assert resident.memory is not None and {port.direction for port, _ in resident.memory.ports} == {"write"}
    assert at_once.cycles < resident.cycles < plain.cycles
    assert [node.first for node in resident.nodes] == [node.first for node in at_once.nodes]
    assert resident.outputs["Y"].to_dense().tolist() == plain.outputs["Y"].to_dense().tolist() == [12.0, 0.0, 18.0, 4.0]
    assert {(t.tensor, t.direction) for t in resident.traffic} == {("Y", "write")}


def test_random_graphs_run_alike_where_the_memory_answers_at_once() -> None:
    for seed in range(9100, 9120):
        case = random_case(seed)
        machine = case.machine.model_copy(update={"latency": UnitCycles(), "interval": UnitIntervals()})
        plain, resident = (on_reference(replace(c, machine=machine)) for c in (case, in_graph(case, seed, 1.0)))
        if isinstance(plain, Outcome):
            assert isinstance(resident, Outcome) and (resident.cycles, resident.nodes) == (plain.cycles, plain.nodes)


def test_the_latency_of_the_memory_is_not_that_of_the_configuration() -> None:
    slow = load_machine("ideal", {"latency.memory": 20})
    plain, resident = (simulate(product(*names), TENSORS, slow) for names in ((), ("A", "X")))
    assert plain.cycles - resident.cycles == 2 * 19  # the scan of the compressed level, and the load behind it


def test_the_configuration_is_loaded_once_at_the_peak_of_the_memory() -> None:
    """Positions, coordinates and values of A: (5 + 4 + 4) words; X has 6 values."""
    run = simulate(product("A", "X"), TENSORS, load_machine("rda", {"memory.channels": 1}))
    assert (run.config.bytes, run.config.cycles) == (4 * 13 + 4 * 6, 3)  # 32 bytes a cycle
    assert simulate(product("X"), TENSORS, load_machine("ideal")).config.bytes == 24
    assert simulate(product("X"), TENSORS, load_machine("ideal")).config.cycles == 0
    assert simulate(product(), TENSORS, load_machine("rda")).config.bytes == 0


def test_more_than_the_configuration_holds_is_refused_with_both_numbers() -> None:
    machine = load_machine("rda", {"config_bytes": 76})
    assert simulate(product("A", "X"), TENSORS, machine).config.bytes == 76
    with pytest.raises(MachineError) as caught:
        simulate(product("A", "X"), TENSORS, load_machine("rda", {"config_bytes": 75}))
    assert "have 76 bytes (`A`, `X`)" in caught.value.message and "`rda` holds 75" in caught.value.message
    assert "--set config_bytes" in caught.value.hint


def test_a_machine_says_how_many_bytes_its_configuration_holds() -> None:
    assert load_machine("rda").config_bytes == Machine(name="m").config_bytes == 65_536
    assert "config_bytes" not in load_machine("rda").settings
    assert load_machine("rda", {"config_bytes": 0}).settings["config_bytes"] == 0
    for wrong in (-1, "many", True, None):
        with pytest.raises(MachineError, match="must be a whole number of bytes, 0 or more"):
            load_machine("rda", {"config_bytes": wrong})
    with pytest.raises(MachineError, match="unknown key `config_byte`") as caught:
        load_machine("rda", {"config_byte": 1})
    assert "`config_bytes`" in caught.value.hint


def test_graphs_with_other_residents_are_other_graphs() -> None:
    """What is kept by the structure or the signature of a graph is not taken for that of another one."""
    graphs = [product(), product("A"), product("X"), product("A", "X")]
    assert len({repr(signature(graph, TENSORS)) for graph in graphs}) == len({graph.structure.key for graph in graphs}) == 4


def test_a_resident_output_is_refused() -> None:
    graph = product()
    wrong = replace(graph, tensors=tuple(replace(t, resident=t.name == "Y") for t in graph.tensors))
    with pytest.raises(GraphError, match="output `Y` is resident") as caught:
        verify(wrong)
    assert "only what is read" in caught.value.hint
