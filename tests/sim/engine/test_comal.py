"""On the `comal` machine the engine gives the published cycles, and agrees with the reference in everything else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import comal
import numpy as np
import pytest
from engines import LIMITS, differences, on_engine, on_reference
from random_graphs import Case, random_case

from fuseflow.samml.files import load_graph
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import load_machine, simulate
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.tensors import pack

COMAL, TINY = load_machine("comal"), LIMITS[1]
SMALLEST = {case.kernel: case for case in reversed(comal.cases(comal.HERE))}


@pytest.mark.parametrize("case", comal.cases(comal.ALL) or comal.cases(comal.HERE), ids=lambda case: case.id)
def test_golden_cases(case: comal.Case, tmp_path: Path) -> None:
    comal.check(case, tmp_path, "fast")


@pytest.mark.parametrize("case", SMALLEST.values(), ids=lambda case: case.id)
def test_golden_cases_field_by_field(case: comal.Case, tmp_path: Path) -> None:
    """With workspaces that the rings hold a few tokens of at a time."""
    same_case = Case(*load_graph(case.graph, case.listing(tmp_path / "tensors.yaml")), COMAL)
    assert not list(differences(same_case, on_reference(same_case), on_engine(same_case, TINY)))


@pytest.mark.parametrize("limits", range(len(LIMITS)))
def test_random_graphs(limits: int) -> None:
    for seed in range(1000 * limits, 1000 * limits + 50):
        case = random_case(seed)
        case = replace(case, graph=replace(case.graph, depths=()), machine=COMAL)
        assert not list(differences(case, on_reference(case), on_engine(case, LIMITS[limits]))), seed


def case_of(text: str, **arrays: object) -> Case:
    graph = parse(f"graph example\n{text}")
    verify(graph)
    return Case(graph, {name: pack(np.array(a, float), graph.declared[name].format) for name, a in arrays.items()}, COMAL)


def agreed(case: Case) -> Outcome:
    """What both say, whatever the limits."""
    expected = on_reference(case)
    assert isinstance(expected, Outcome)
    for limits in LIMITS:
        assert not list(differences(case, expected, on_engine(case, limits)))
    return expected


LATE_STOP = """
tensor A[2, 3, 2]  (dense, dense, compressed) f64
tensor Y[3, 2]  dcsr f64
output Y
root = root()
i = scan(root) A.0
j = scan(i.ref) A.1
k = scan(j.ref) A.2
v = load(k.ref) A
l1 = join(j.crd; j.crd) intersect
l2 = join(l1; l1) intersect
l3 = join(l2; l2) intersect
l4 = join(l3; l3) intersect
l5 = join(l4; l4) intersect
acc = accumulate(i.crd, l5, k.crd, v) sum order=2
Y_j = write(acc.crd1) Y.0
Y_k = write(acc.crd2) Y.1
Y_v = write(acc.val) Y.vals
"""


@pytest.mark.parametrize("stored", [[], [(0, 0, 1)], [(0, 2, 0)], [(1, 1, 1), (1, 2, 0)]])
def test_accumulate_waits_for_the_stop_behind_a_coordinate_with_nothing_below(stored: list[tuple[int, ...]]) -> None:
    """The coordinate and its stop leave in one firing, which the stop alone may hold back."""
    array = np.zeros((2, 3, 2))
    for place in stored:
        array[place] = 1 + sum(place)
    agreed(case_of(LATE_STOP, A=array))


LATER = 60
TWO_AT_ONCE = f"""
tensor x[2, 12]  (dense, dense) f64
tensor A[2, 12, 4]  (dense, dense, compressed) f64
tensor Y[2, 12, 4]  csf f64
output Y
root = root()
x_i = scan(root) x.0
x_j = scan(x_i.ref) x.1
x0 = load(x_j.ref) x
{"".join(f"x{k + 1} = alu(x{k}) copy N->0{chr(10)}" for k in range(LATER))}
i = scan(root) A.0
j = scan(i.ref) A.1
k = scan(j.ref) A.2
v = load(k.ref) A
x_k = repeat(x{LATER}, k.crd)
mul = alu(x_k, v) mul N->0,N->0
Y_i = write(i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_k = write(k.crd) Y.2
Y_v = write(mul) Y.vals
"""


def test_a_peak_inside_a_run_that_comes_in() -> None:
    """The signal is early. Row 0 has values in its last fiber only: while they go out, row 1 comes in; then x leaves with the stop
    behind it, and from then on one token leaves for each that comes in, so the end of the row finds one less."""
    array = np.zeros((2, 12, 4))
    array[0, 11] = 1
    edges = {(edge.node, edge.input): edge.peak for edge in agreed(case_of(TWO_AT_ONCE, x=np.ones((2, 12)), A=array)).edges}
    assert edges["x_k", 0] == 7


COORDINATE_DROP = """
tensor A[3, 4, 5]  (dense, dense, compressed) f64
tensor Y[3, 4, 5]  (dense, compressed, compressed) f64
output Y
root = root()
i = scan(root) A.0
j = scan(i.ref) A.1
k = scan(j.ref) A.2
v = load(k.ref) A
d = drop(j.crd, k.crd, k.crd)
Y_i = write(i.crd) Y.0
Y_j = write(d.crd0) Y.1
Y_k = write(d.crd1) Y.2
Y_v = write(v) Y.vals
"""


@pytest.mark.parametrize("density", [0.0, 0.05, 0.1, 0.3, 0.6, 1.0])
def test_a_drop_of_coordinates(density: float) -> None:
    """Its values are written undropped. Empty lists lead, follow each other, and end."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        array = (rng.random((3, 4, 5)) < density) * (1.0 + rng.random((3, 4, 5)))
        case = case_of(COORDINATE_DROP, A=array)
        agreed(case)
        result = simulate(case.graph, case.tensors, COMAL, check=True)
        np.testing.assert_array_equal(result.outputs["Y"].to_dense(), array)
