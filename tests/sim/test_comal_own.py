"""The cycles of the public simulator on graphs that fuseflow wrote, with the end of every process, on both simulators."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fuseflow.machine import comal as comal_rules
from fuseflow.samml.files import load_graph
from fuseflow.sim import Engine, load_machine, simulate
from fuseflow.sim.reference import execute

HERE = Path(__file__).parents[1] / "data" / "comal_own"
ALL = Path(__file__).parents[3] / "shared" / "golden" / "comal_own" / "cases"
"""The whole set, where it is there."""


@dataclass(frozen=True)
class Case:
    name: str
    category: str
    folder: Path
    outputs: dict[str, str]
    """The name of each output tensor in `outputs.npz`."""
    cycles: int
    finish: dict[str, int]
    """The cycle in which the process of every operation ends."""


def cases(folder: Path, index: Path) -> list[Case]:
    return [
        Case(c["name"], c["category"], folder / c["name"], c["outputs"], c["cycles"], dict(c["finish"]))
        for c in json.loads(index.read_text())["cases"]
    ]


def small_cases() -> list[Case]:
    return cases(HERE, HERE / "cases.json")


def all_cases() -> list[Case]:
    return cases(ALL, ALL.parent / "cases.json") if ALL.is_dir() else []


def faults(case: Case, engine: Engine) -> list[str]:
    """What is otherwise than in the public simulator: values, cycles, the end of any process."""
    graph, tensors = load_graph(case.folder / "graph.bin", case.folder / "tensors.yaml")
    result = simulate(graph, tensors, load_machine("comal"), engine=engine)
    found = []
    with np.load(case.folder / "outputs.npz") as due:
        for name, key in case.outputs.items():
            values, expected = result.outputs[name].to_dense(), due[key]
            largest = np.abs(expected).max(initial=0)
            if values.shape != expected.shape or np.abs(values - expected).max(initial=0) > 1e-4 * max(largest, 1e-30):
                found.append(f"{case.name}: the values of `{name}` differ")
    ends = {node.name: node.last + (node.op in ("root", "write_values")) for node in result.nodes}
    processes = {
        name: end for name, end in case.finish.items() if not name.startswith("broadcast") and not name.endswith(".signal")
    }
    if result.cycles != case.cycles:
        found.append(f"{case.name}: {result.cycles} cycles, not {case.cycles}")
    if ends.keys() != processes.keys():
        found.append(f"{case.name}: other nodes, {sorted(ends.keys() ^ processes.keys())}")
    found += [
        f"{case.name}: `{name}` ends in {ends.get(name)}, not {end}" for name, end in processes.items() if ends.get(name) != end
    ]
    return found


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_golden_cases(engine: Engine) -> None:
    cases = small_cases()
    assert len(cases) == 32
    assert {case.category for case in cases} == {"F2", "F3", "F4", "other"}
    assert [fault for case in cases for fault in faults(case, engine)] == []


@pytest.mark.skipif(not ALL.is_dir(), reason="../shared/golden/comal_own is not here")
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_all_golden_cases(engine: Engine) -> None:
    cases = all_cases()
    assert len(cases) == 134
    assert [fault for case in cases for fault in faults(case, engine)] == []


def test_a_wrong_rule_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its broadcasts the simulator gives other cycles; and a case with another cycle or end is not equal."""
    case = next(case for case in small_cases() if case.category == "F2")
    assert faults(replace(case, cycles=case.cycles + 1), "reference")
    assert faults(replace(case, finish={**case.finish, "root": 3}), "reference")
    monkeypatch.setattr(execute, "broadcast_delays", lambda graph: dict.fromkeys(comal_rules.broadcast_delays(graph), 0))
    assert faults(case, "reference")
