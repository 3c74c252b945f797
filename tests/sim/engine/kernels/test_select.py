"""The kernel of `select`: the recorded streams on both simulators, the reference token by token, and what sorting in PyTorch keeps."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines import LIMITS, case_of, disagreements, disagreements_at_all_limits
from random_graphs.case import Case

from fuseflow.keep_rules import By, Largest, kept
from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.samml.tokens import decode
from fuseflow.samml.tokens import parse as parse_stream
from fuseflow.samml.verify import verify
from fuseflow.sim import Simulation, load_machine, simulate
from fuseflow.sim.engine.workspace import HELD, ORDERS, EntryList, keep_largest
from fuseflow.tensors import Format, from_coordinates, pack

STREAMS = json.loads((Path(__file__).parents[3] / "data" / "sparsity" / "select_streams.json").read_text(encoding="utf-8"))
"""Thirty cases, which come with the design of the primitive and were not made by this code."""

# Groups, fibers, and all below one, two or three levels; of what was selected before
DEEP = """
tensor A[3, 4, 17]  (compressed, compressed, compressed) f64
tensor Y[3, 4, 17]  (compressed, compressed, compressed) f64
tensor Z[3, 4, 17]  (compressed, compressed, compressed) f64
output Y, Z
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_k = scan(A_j.ref) A.2
A_v = load(A_k.ref) A
pair = select(A_k.crd, A_v) keep=2 every=4 levels=1
few = select(pair.crd, pair.val) keep=3 every=0 levels=1
block = select(A_j.crd, few.crd, few.val) keep=5 every=0 levels=2 least
all = select(A_i.crd, A_j.crd, A_k.crd, A_v) keep=9 every=0 levels=3 greatest marks
Y_i = write(all.crd0) Y.0
Y_j = write(all.crd1) Y.1
Y_k = write(all.crd2) Y.2
Y_v = write(all.val) Y.vals
Z_i = write(A_i.crd) Z.0
Z_j = write(block.crd0) Z.1
Z_k = write(block.crd1) Z.2
Z_v = write(block.val) Z.vals
"""
MATRIX = """
graph largest
tensor A[{rows}, {columns}]  {format} f64
tensor Y[{rows}, {columns}]  {format} f64
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
best = select({crds}, A_v) keep={keep} every={every} levels={levels}
Y_i = write({outer}) Y.0
Y_j = write(best.{inner}) Y.1
Y_v = write(best.val) Y.vals
"""
VECTOR = """
graph largest
tensor A[{columns}]  (compressed) f64
root = root()
A_j = scan(root) A.0
A_v = load(A_j.ref) A
best = select(A_j.crd, A_v) keep={keep} every={every} levels={levels}
"""


def matrix(array: np.ndarray, keep: int, every: int, levels: int, machine: str = "rda") -> Case:
    (rows, columns), outer, inner = array.shape, "A_i.crd", "crd"
    format, crds = "(dense, compressed)", "A_j.crd"
    if levels == 2:
        format, crds, outer, inner = "(compressed, compressed)", "A_i.crd, A_j.crd", "best.crd0", "crd1"
    text = MATRIX.format(
        rows=rows, columns=columns, format=format, crds=crds, keep=keep, every=every, levels=levels, outer=outer, inner=inner
    )
    graph = parse(text)
    verify(graph)
    return Case(graph, {"A": pack(array, graph.declared["A"].format)}, load_machine(machine))


def run(case: Case, engine: Any = "fast") -> Simulation:
    return simulate(case.graph, case.tensors, case.machine, engine=engine, record=True)


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("case", STREAMS, ids=str)
def test_recorded_streams(case: dict[str, Any], engine: str) -> None:
    names = ["crd"] if case["levels"] == 1 else [f"crd{k}" for k in range(case["levels"])]
    tokens = {name: parse_stream(case[f"{name}_in"]) for name in (*names, "val")}
    *_, crd, val = (decode(tokens[name], depth) for name, depth in zip(tokens, _depths(case, tokens), strict=True))
    if case["levels"] == 1 and _depths(case, tokens)[0] == 1:
        text, shape, where, values = VECTOR.format(columns=case["size"], **_fields(case)), (case["size"],), [crd], val
    else:
        rows = decode(tokens["crd0"], 1) if case["levels"] == 2 else range(len(crd))
        size = case["sizes"] if case["levels"] == 2 else (len(crd), case["size"])
        where = [[i for i, row in zip(rows, crd, strict=True) for _ in row], [j for row in crd for j in row]]
        format = "(compressed, compressed)" if case["levels"] == 2 else "(dense, compressed)"
        crds = "A_i.crd, A_j.crd" if case["levels"] == 2 else "A_j.crd"
        text = MATRIX[: MATRIX.index("Y_i")].replace("output Y\n", "").replace("tensor Y", "tensor B")
        text = text.format(rows=size[0], columns=size[1], format=format, crds=crds, **_fields(case))
        shape, values = tuple(size), [v for row in val for v in row]
    graph = parse(text)
    verify(graph)
    tensor = from_coordinates(
        shape, np.array(where, int).reshape(len(shape), -1), np.array(values, float), graph.declared["A"].format
    )
    result = simulate(graph, {"A": tensor, "B": tensor}, load_machine("ideal"), engine=engine, record=True)
    node = next(node for node in graph.nodes if isinstance(node, n.Select))
    for k, name in enumerate((*names, "val")):
        assert list(result.streams[node.inputs[k]].tokens) == tokens[name]
        assert list(result.streams[n.Port("best", k)].tokens) == parse_stream(case[f"{name}_out"])


def _fields(case: dict[str, Any]) -> dict[str, int]:
    return {name: case[name] for name in ("keep", "every", "levels")}


def _depths(case: dict[str, Any], tokens: dict[str, Any]) -> list[int]:
    deepest = max(token.high + 1 for token in tokens["val"] if hasattr(token, "high"))
    return [*(deepest - case["levels"] + 1 + k for k in range(case["levels"])), deepest]


@pytest.mark.parametrize("seed", range(20))
def test_like_the_reference(seed: int) -> None:
    case = case_of(DEEP, seed)
    assert not list(disagreements_at_all_limits(case))


@pytest.mark.parametrize(
    ("keep", "every", "levels"), [(1, 0, 1), (7, 0, 1), (2, 4, 1), (3, 7, 1), (1, 1, 1), (256, 256, 1), (50, 0, 2)]
)
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_what_the_table_of_rules_keeps(keep: int, every: int, levels: int, density: float) -> None:
    """Ties, infinities and NaN; and the most entries that were held."""
    rng = np.random.default_rng(keep)
    array = rng.choice([1.0, -1.0, 2.0, -2.0, 0.5, np.inf, -np.inf, np.nan], (9, 300)) * 1.0
    array[rng.random(array.shape) >= density] = 0.0
    case = matrix(array, keep, every, levels)
    result = run(case)
    mask = kept(Largest(keep, every), array, [1] if levels == 1 else [0, 1])
    np.testing.assert_array_equal(result.outputs["Y"].to_dense(), np.where(mask, array, 0.0))
    groups = array.reshape(9, -1) if levels == 1 else array.reshape(1, -1)
    step = every or groups.shape[1]
    most = max(np.count_nonzero(groups[:, at : at + step], axis=1).max() for at in range(0, groups.shape[1], step))
    (workspace,) = [node.workspace for node in result.nodes if node.op == "select"]
    assert workspace == most
    assert not list(disagreements(case, LIMITS[0]))


def test_the_coordinates_are_those_of_topk() -> None:
    array = np.random.default_rng(3).standard_normal((40, 1000))
    result = run(matrix(array, 8, 0, 1))
    expected = torch.from_numpy(array).abs().topk(8, dim=1).indices.sort(dim=1).values
    assert decode(list(result.streams[n.Port("best", 0)].tokens), 2) == expected.tolist()


@pytest.mark.parametrize("least", [False, True])
def test_the_coordinates_of_signed_numbers_are_those_of_topk(least: bool) -> None:
    array = np.random.default_rng(4).standard_normal((40, 300))
    case = matrix(array, 8, 0, 1)
    (node,) = (node for node in case.graph.nodes if isinstance(node, n.Select))
    signed = dataclasses.replace(node, greatest=not least, least=least, marks=True)
    graph = dataclasses.replace(case.graph, nodes=tuple(signed if other is node else other for other in case.graph.nodes))
    result = run(dataclasses.replace(case, graph=graph))
    expected = torch.from_numpy(array).topk(8, dim=1, largest=not least).indices
    marks = torch.zeros(array.shape, dtype=torch.float64).scatter_(1, expected, 1.0)
    np.testing.assert_array_equal(result.outputs["Y"].to_dense(), marks.numpy())


def test_nodes_without_workspaces_say_so() -> None:
    result = run(matrix(np.ones((2, 8)), 2, 4, 1))
    assert {node.op: node.workspace for node in result.nodes if node.workspace is not None} == {"select": 4}


@pytest.mark.parametrize(
    "values", [[3.0, np.nan, -np.inf, 1e300], [0.0, -0.0, 5e-324, -5e-324], [float("-nan"), np.nan, 1.0, np.inf]]
)
@pytest.mark.parametrize("keep", [1, 2, 3])
@pytest.mark.parametrize("by", ORDERS)
def test_the_orders_of_numbers(values: list[float], keep: int, by: By) -> None:
    record = HELD.array(1)
    entries = EntryList(record, 1, 4)
    entries.values[:] = np.array(values).view(np.int64)
    entries.crds[0, :] = range(4)
    record["used"] = 4
    keep_largest(HELD.at(record.ctypes.data), keep, ORDERS.index(by), 0)
    assert entries.crds[0, : int(record["used"][0])].tolist() == np.flatnonzero(kept(Largest(keep, by=by), values, [0])).tolist()


def test_a_vector_is_a_fiber() -> None:
    graph = parse(VECTOR.format(columns=9, keep=2, every=0, levels=1))
    tensor = pack([0.0, 5.0, 0, -7, 1, 0, 0, 0, 7], Format.parse("(compressed)", 1))
    result = simulate(graph, {"A": tensor}, load_machine("ideal"), record=True)
    assert " ".join(map(str, result.streams[n.Port("best", 0)].tokens)) == "3 8 S0 D"
