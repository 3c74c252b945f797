"""Chains of products have all their other orders, and those alone."""

from __future__ import annotations

import pytest

from fuseflow.einsum.association import associated, chain_orders
from fuseflow.einsum.parse import parse

DECLARED = "\n".join(f"tensor {name}[4, 4] dense" for name in "ABCD")


def orders(*lines: str, output: str) -> dict[str, list[str]]:
    program = parse("\n".join(("program p", DECLARED, *lines, f"output {output}")))
    return {name: list(map(str, chains)) for name, chains in chain_orders(program).items()}


FIRST = "S[i, j] = sum(k) A[i, k] * B[k, j]"
SECOND = "T[i, j] = sum(k) S[i, k] * C[k, j]"
THIRD = "U[i, j] = sum(k) T[i, k] * D[k, j]"


@pytest.mark.parametrize(
    ("lines", "output", "expected"),
    [
        ((FIRST, SECOND), "T", {"T": ["A (B C)"]}),
        ((FIRST, SECOND, "R[i, j] = max(T[i, j], 0)"), "R", {"T": ["A (B C)"]}),
        ((FIRST,), "S", {}),
        ((FIRST, "R[i, j] = max(S[i, j], 0)", "T[i, j] = sum(k) R[i, k] * C[k, j]"), "T", {}),
        ((FIRST, SECOND, "R[i, j] = S[i, j] + T[i, j]"), "R", {}),
    ],
    ids=[
        "three factors",
        "a pointwise operator behind",
        "two factors",
        "an operator between",
        "an intermediate with two readers",
    ],
)
def test_the_other_orders_of_a_chain(lines: tuple[str, ...], output: str, expected: dict[str, list[str]]) -> None:
    assert orders(*lines, output=output) == expected


def test_four_factors_have_the_four_other_ways_to_pair_them() -> None:
    found = orders(FIRST, SECOND, THIRD, output="U")
    assert sorted(found["U"]) == ["(A (B C)) D", "(A B) (C D)", "A ((B C) D)", "A (B (C D))"]


def test_every_order_is_one_that_a_schedule_may_ask_for() -> None:
    program = parse("\n".join(("program p", DECLARED, FIRST, SECOND, THIRD, "output U")))
    for name, chains in chain_orders(program).items():
        for chain in chains:
            assert associated(program, name, chain).outputs == program.outputs
