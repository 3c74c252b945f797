"""Products in another order mean the same, and are refused where they cannot be."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.einsum.association import associated, chain_orders
from fuseflow.einsum.chain import Chain, Group
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program, Reduce
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import ProgramError

DECLARED = """
tensor A[5, 5] csr
tensor X[5, 4] csr
tensor W[4, 3] csr
tensor b[3] dense
"""


def program(text: str) -> Program:
    return parse(DECLARED + text)


GCN = """
T0[i, f] = sum(k) A[i, k] * X[k, f]
T1[i, h] = sum(f) T0[i, f] * W[f, h]
Y[i, h] = relu(T1[i, h] + b[h])
output Y
"""


def statements(rewritten: Program) -> list[str]:
    return [" ".join(line.split()) for line in show(rewritten).splitlines() if " = " in line]


def test_a_chain_of_three() -> None:
    rewritten = associated(program(GCN), "T1", Chain.parse("A (X W)"))
    assert statements(rewritten) == [
        "T1.X_W[k, h] = sum(f) X[k, f] * W[f, h]",
        "T1[i, h] = sum(k) A[i, k] * T1.X_W[k, h]",
        "Y[i, h] = relu(T1[i, h] + b[h])",
    ]


def test_the_order_of_the_program_changes_nothing() -> None:
    assert statements(associated(program(GCN), "T1", Chain.parse("(A X) W"))) == statements(program(GCN))


def test_products_inside_of_a_larger_expression() -> None:
    text = "T0[i, f] = 2 * (sum(k) A[i, k] * X[k, f])\nY[i, h] = relu((sum(k) T0[i, k] * W[k, h]) + b[h])\noutput Y\n"
    assert statements(associated(program(text), "Y", Chain.parse("A (X W)"))) == [
        "Y.X_W[k2, h] = sum(k) X[k2, k] * W[k, h]",
        "Y[i, h] = relu(2 * (sum(k2) A[i, k2] * Y.X_W[k2, h]) + b[h])",
    ]


def test_products_that_are_summed_again_outside_of_a_function() -> None:
    text = "T0[i, f] = sum(k) A[i, k] * X[k, f]\nY[i] = sum(h) relu(sum(f) T0[i, f] * W[f, h])\noutput Y\n"
    assert statements(associated(program(text), "Y", Chain.parse("A (X W)"))) == [
        "Y.X_W[k, h] = sum(f) X[k, f] * W[f, h]",
        "Y[i] = sum(h) relu(sum(k) A[i, k] * Y.X_W[k, h])",
    ]


def test_a_tensor_that_is_a_factor_twice() -> None:
    text = "T[i, j] = sum(k) A[i, k] * A[k, j]\nY[i, f] = sum(j) T[i, j] * X[j, f]\noutput Y\n"
    assert statements(associated(program(text), "Y", Chain.parse("A (A X)"))) == [
        "Y.A_X[k, f] = sum(j) A[k, j] * X[j, f]",
        "Y[i, f] = sum(k) A[i, k] * Y.A_X[k, f]",
    ]


@pytest.mark.parametrize(
    ("text", "name", "chain", "why"),
    [
        (GCN, "T1", "A (X b)", "`b` is no factor of it"),
        (GCN, "T1", "X W", "`A` is a factor of it, too"),
        (GCN, "T1", "A (X (W W))", "`W` is no factor of it, or not so often"),
        (GCN, "T1", "X (A W)", "`A` and `W` share no index"),
        (GCN, "Y", "A (X W)", "it is no product of tensors"),
        (GCN, "Z", "A (X W)", "the program computes no such tensor"),
        (GCN + "output T0\n", "T1", "A (X W)", "`T0` stands between the factors: it is an output"),
        (
            GCN.replace("b[h]", "b[h] + (sum(f) T0[i, f])"),
            "T1",
            "A (X W)",
            "`T0` stands between the factors: it is read at 2 places",
        ),
        (GCN.replace("= sum(k) A[i, k] * X[k, f]", "= relu(sum(k) A[i, k] * X[k, f])"), "T1", "A (X W)", "it has `relu` in it"),
        (GCN.replace("sum(k)", "max(k)"), "T1", "A (X W)", "it has `max` in it"),
    ],
)
def test_refusals(text: str, name: str, chain: str, why: str) -> None:
    with pytest.raises(ProgramError) as error:
        associated(program(text), name, Chain.parse(chain))
    assert why in error.value.message


KEPT = """
T[i, f] = sum(k) A[i, k] * X[k, f]
Y[i, h] = keep({0}) sum(f) T[i, f] * W[f, h]
output Y
"""


@pytest.mark.parametrize("rule", ["threshold 1", "nonzero", "2 over h", "1 of 3 over h"])
@pytest.mark.parametrize("body", ["sum(f) T[i, f] * W[f, h]", "2 * (sum(f) T[i, f] * W[f, h])", "relu(sum(f) T[i, f] * W[f, h])"])
def test_a_chain_that_ends_in_a_keep(rule: str, body: str) -> None:
    """The chain in a `keep` stayed as it was, and read a tensor that was gone."""
    before = program(KEPT.format(rule).replace("sum(f) T[i, f] * W[f, h]", body))
    after = associated(before, "Y", Chain.parse("A (X W)"))
    assert "Y.X_W" in {e.name for e in after.einsums} and "T" not in after.defined
    rng = np.random.default_rng(0)
    arrays = {t.name: rng.integers(-3, 4, t.shape).astype(np.float64) for t in before.inputs}
    np.testing.assert_array_equal(evaluate(after, arrays)["Y"], evaluate(before, arrays)["Y"])
    assert list(map(str, chain_orders(before)["Y"])) == ["A (X W)"]


def pairs(draw: Random, first: int, last: int) -> Group:
    """A random tree over the factors `first` to `last - 1` of a chain."""
    if last - first == 1:
        return f"M{first}"
    at = draw.randint(first + 1, last - 1)
    return pairs(draw, first, at), pairs(draw, at, last)


def written(group: Group, first: int, lines: list[str]) -> tuple[str, int]:
    """Write the products of a tree as statements. Returns the name of the result, and the factor after its last."""
    if isinstance(group, str):
        return group, first + 1
    left, middle = written(group[0], first, lines)
    right, last = written(group[1], middle, lines)
    lines.append(f"P{len(lines)}[i{first}, i{last}] = sum(i{middle}) {left}[i{first}, i{middle}] * {right}[i{middle}, i{last}]")
    return f"P{len(lines) - 1}", last


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7))
def test_every_order_of_random_chains(seed: int, count: int) -> None:
    """A chain of matrices of random sizes, written in a random order, and computed in another one."""
    draw, rng = Random(seed), np.random.default_rng(seed)
    sizes = [draw.randint(1, 4) for _ in range(count + 1)]
    lines: list[str] = []
    result, _ = written(pairs(draw, 0, count), 0, lines)
    declared = "".join(f"tensor M{k}[{sizes[k]}, {sizes[k + 1]}] dense f64\n" for k in range(count))
    before = parse(declared + "\n".join(lines) + f"\noutput {result}\n")
    after = associated(before, result, Chain(wanted := pairs(draw, 0, count)))  # type: ignore[arg-type]
    arrays = {f"M{k}": rng.integers(-3, 4, (sizes[k], sizes[k + 1])).astype(np.float64) for k in range(count)}
    product = np.linalg.multi_dot(list(arrays.values()))
    for p in (before, after):
        np.testing.assert_array_equal(evaluate(p, arrays, outputs_only=True)[result], product)
    assert len(after.einsums) == count - 1 and all(isinstance(e.body, Reduce) for e in after.einsums)
    assert associated(after, result, Chain(wanted)) == after  # type: ignore[arg-type]
