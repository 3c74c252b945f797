"""Golden cases of the public Comal simulator on graphs that fuseflow wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fuseflow.samml.files import load_graph
from fuseflow.sim import Engine, load_machine, simulate

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
