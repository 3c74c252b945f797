"""The public form of a graph writes the same tensors from primitives of the public schema alone, or says why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from random_graphs import Case, random_case

from fuseflow.errors import GraphError
from fuseflow.samml import protobuf
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors, dense_dimension
from fuseflow.samml.nodes import Alu, Graph, Join, Operand, Port, Primitive
from fuseflow.samml.text import parse
from fuseflow.samml.verify import verify
from fuseflow.sim import Simulation, load_machine, simulate
from fuseflow.sim.engine_names import Engine
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.transform.public import public_form
from fuseflow.transform.public.arithmetic import FORMS, FORMS_OF_32_BITS
from fuseflow.transform.public.form import RULES
from fuseflow.transform.public.rewriter import GraphRewriter, Rule, Side

IDEAL = load_machine("ideal")
SEEDS = range(120)


def rewritten(graph: Graph, rules: Mapping[type[Primitive], Rule] = RULES) -> Graph:
    """The graph after all rules, whether or not that leaves something without a public form."""
    public = GraphRewriter(graph).run(rules)
    verify(public)
    return public


def bare(case: Case) -> Graph:
    return replace(case.graph, depths=(), fiber_fifos=())


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors store the same coordinates, and the same numbers but for their last digits."""
    arrays = [(x.arrays, y.arrays) for x, y in zip(a.levels, b.levels, strict=True)]
    stored = all(x.keys() == y.keys() and all(np.array_equal(x[k], y[k]) for k in x) for x, y in arrays)
    return stored and np.allclose(a.values.astype(float), b.values.astype(float), rtol=1e-5, atol=1e-6)


def regular(own: Simulation) -> bool:
    """Whether no stream of numbers holds an infinity or NaN, which arithmetic does not select as an operator does."""
    numbers = (t for r in own.streams.values() for t in r.tokens if isinstance(t, float | np.ndarray))
    return all(bool(np.isfinite(number).all()) for number in numbers)


def differing(seeds: range, rules: Mapping[type[Primitive], Rule], engine: Engine = "reference") -> tuple[int, list[str]]:
    """How many random graphs were compared, and in which outputs of which of them the public form differs."""
    compared, lines = 0, []
    for seed in seeds:
        case = random_case(seed, "small")
        graph = bare(case)
        own = simulate(graph, case.tensors, IDEAL, engine="reference", record=True)
        if not regular(own):
            continue
        public = simulate(rewritten(graph, rules), case.tensors, IDEAL, engine=engine, check=True)
        compared += 1
        lines += [f"{seed}: {name}" for name in graph.outputs if not same(own.outputs[name], public.outputs[name])]
    return compared, lines


def test_random_graphs_write_the_same_tensors() -> None:
    compared, lines = differing(SEEDS, RULES)
    assert not lines
    assert compared >= len(SEEDS) / 2


def test_random_graphs_write_the_same_tensors_on_the_engine() -> None:
    compared, lines = differing(range(200, 220), RULES, "fast")
    assert not lines and compared


def test_a_wrong_rule_is_seen() -> None:
    """An intersection that is made a union gives other values, or streams that are not aligned."""

    def wrong(w: GraphRewriter, node: Join) -> Sequence[Port]:
        sides: list[Side] = [(node.inputs[crd], tuple(node.inputs[p] for p in payloads)) for crd, payloads in node.sides()]
        return w.join(node.name, "union" if node.kind == "intersect" else node.kind, sides)

    def run() -> None:
        _, lines = differing(SEEDS, {**RULES, Join: wrong})
        assert not lines

    with pytest.raises((AssertionError, GraphError)):
        run()


def test_a_range_is_the_scan_of_a_vector_that_nobody_provides() -> None:
    graph = parse(
        "graph g\ntensor A[4]  (compressed)\ntensor Y[4]  dense\noutput Y\n\nroot = root()\nall = range(root) 4\n"
        "A_i = scan(root) A.0 sequential\nleft_i = join(all; A_i.crd, A_i.ref) left\nA_val = load(left_i.out0) A\n"
        "w = write(left_i.crd) Y.0\nv = write(A_val) Y.vals\n"
    )
    form = public_form(graph)
    assert not form.private and form.graph.tensors[-1] == dense_dimension(4)
    assert [node.op for node in form.graph.nodes] == ["root", "scan", "scan", "join", "load", "write", "write_values"]
    join = next(node for node in form.graph.nodes if isinstance(node, Join))
    assert join.kind == "union" and join.payloads == (1, 1)
    tensors = {"A": pack(np.array([0.0, 2.0, 0.0, 3.0]), Format.parse("(compressed)", 1))}
    assert simulate(form.graph, tensors, IDEAL).outputs["Y"].values.tolist() == [0, 2, 0, 3]
    again = protobuf.from_proto(protobuf.to_proto(form.graph))
    assert again == form.graph and set(auxiliary_tensors(again)) == {"dimension@4"}


def test_what_has_no_public_form_is_named_and_stays() -> None:
    graph = parse(
        "graph g\ntensor A[4]  dense\ntensor Y[]  dense\noutput Y\n\nroot = root()\nA_i = scan(root) A.0\nv = load(A_i.ref) A\n"
        "p = reduce(v) prod\nw = write(p) Y.vals\n"
    )
    form = public_form(graph)
    assert form.graph == graph
    assert form.private == ("`p`: other readers have no reduction by prod",)


NUMBERS = {
    "log": np.concatenate([np.logspace(-37, 38, 151), [0.0, 1.0]]),
    "erf": np.concatenate([np.linspace(-6, 6, 121), [-30.0, 30.0, 1e-6]]),
    "sqrt": np.concatenate([np.logspace(-30, 30, 61), [0.0]]),
}
SLOTS: Mapping[str, tuple[Operand, ...]] = {
    "pow": (Operand(0.0), Operand(2.0, constant=True)),
    "max": (Operand(0.0), Operand(0.5, constant=True)),
    "min": (Operand(0.0), Operand(0.5, constant=True)),
    "where": (Operand(0.0), Operand(-math.inf, constant=True), Operand(0.0)),
}
"""The operands of operators that have a form for some only; the others are streams."""
TWO = {"sub", "div", "eq", "ne", "gt", "lt", "le", "ge"}


@pytest.mark.parametrize("function", [*FORMS, *FORMS_OF_32_BITS])
def test_arithmetic_gives_what_the_operator_gives(function: str) -> None:
    x = NUMBERS.get(function, np.linspace(-3, 3, 25)).astype(np.float32)
    y = np.where(np.arange(len(x)) % 3 == 0, x, 1 + np.arange(len(x)) % 2).astype(np.float32)
    tensors = {name: pack(values, Format.dense(1)) for name, values in (("X", x), ("Y", y))}
    graph = parse(
        f"graph g\ntensor X[{len(x)}]  dense\ntensor Y[{len(x)}]  dense\ntensor Z[{len(x)}]  dense\noutput Z\n\nroot = root()\n"
        "X_i = scan(root) X.0\nx = load(X_i.ref) X\nY_i = scan(root) Y.0\ny = load(Y_i.ref) Y\nf = alu(x) neg N->0\n"
        "w = write(X_i.crd) Z.0\nv = write(f) Z.vals\n"
    )
    slots = SLOTS.get(function, (Operand(0.0),) * (2 if function in TWO else 1))
    inputs = tuple(Port(name) for name in ("x", "y"))[: sum(not slot.constant for slot in slots)]
    alu = Alu("f", inputs, function, slots)
    graph = replace(graph, nodes=tuple(alu if node.name == "f" else node for node in graph.nodes))
    form = public_form(graph)
    assert not form.private
    own, public = (simulate(g, tensors, IDEAL).outputs["Z"].values for g in (graph, form.graph))
    assert np.allclose(own, public, rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("function", ["max", "min"])
def test_the_larger_of_two_streams_has_no_public_form(function: str) -> None:
    """y + relu(x - y) gave -inf for the maximum of inf and -inf."""
    graph = parse(
        "graph g\ntensor X[2]  dense\ntensor Y[2]  dense\ntensor Z[2]  dense\noutput Z\n\nroot = root()\n"
        "X_i = scan(root) X.0\nx = load(X_i.ref) X\nY_i = scan(root) Y.0\ny = load(Y_i.ref) Y\n"
        f"f = alu(x, y) {function} N->0,N->0\nw = write(X_i.crd) Z.0\nv = write(f) Z.vals\n"
    )
    form = public_form(graph)
    assert form.graph == graph and "`f`" in form.private[0]
