"""What the sweeps make of each row of the operator table, against what 4,096 random fillings of the unknown operands show.

This is table 2 of SparTA for all operators, pruned operands among others: a result is known exactly if no filling changes it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.ops import OPERATORS, REDUCERS
from fuseflow.propagation import analyse, constant
from fuseflow.propagation.expressions import applied

FILLINGS = 4096
STATES = (math.nan, 0.0, 1.0, -1.0, 0.5, math.inf, -math.inf)
"""What is known of an operand: nothing, or its number."""
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, math.inf, -math.inf)
"""Numbers that random ones rarely hit."""


PARAMETERS = {"saturate": (-128.0, 127.0), "nearest": (2.0**-7, 2.0**-126), "nearest_finite": (2.0**-3, 448.0)}
"""The last operands of operators that round to a narrow type: numbers of the type."""


def states_of(name: str, states: tuple[float, ...]) -> list[tuple[float, ...]]:
    """What may be known of the operands of an operator."""
    parameters = PARAMETERS.get(name, ())
    return [(*own, *parameters) for own in itertools.product(states, repeat=OPERATORS[name].arity - len(parameters))]


def fillings(rng: np.random.Generator, state: float) -> np.ndarray:
    """The numbers of an operand: what is known of it, or random ones."""
    if not math.isnan(state):
        return np.full(FILLINGS, state)
    return np.where(rng.random(FILLINGS) < 0.7, rng.choice(SPECIAL, FILLINGS), rng.normal(scale=3, size=FILLINGS))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_known_exactly_if_no_filling_changes_it(name: str) -> None:
    row, rng = OPERATORS[name], np.random.default_rng(0)
    for states in states_of(name, STATES):
        results = row(*(fillings(rng, state) for state in states))
        known = float(applied(row, [np.asarray(state) for state in states]))
        if np.isnan(results).any():  # not a number is no number that is known
            assert math.isnan(known), (name, states)
        else:
            same = bool((results == results[0]).all())
            assert (not math.isnan(known)) == same, (name, states)
            assert not same or known == results[0], (name, states)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operand_is_needed_exactly_if_a_filling_of_it_changes_something(name: str) -> None:
    row, rng = OPERATORS[name], np.random.default_rng(1)
    letters = "abc"[: row.arity]
    for states in states_of(name, (math.nan, 0.0, 1.0)):
        analysis = analyse(program(name, letters), {x: constant(state) for x, state in zip(letters, states, strict=True)})
        for position, letter in enumerate(letters):
            columns = [fillings(rng, state) for state in states]
            before = row(*columns)
            columns[position] = fillings(rng, states[position])
            changes = not np.array_equal(before, row(*columns), equal_nan=True)
            assert bool(analysis.needed[letter].all()) == changes, (name, states, letter)


def program(name: str, letters: str):
    from fuseflow.einsum.nodes import Access, Apply, Einsum, Program, TensorType

    body = Apply(name, tuple(Access(letter, ()) for letter in letters))
    return Program(tuple(TensorType(letter, ()) for letter in letters), (Einsum("y", (), body),), ("y",))


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reduction_is_known_exactly_if_no_filling_changes_it(name: str) -> None:
    row, rng = REDUCERS[name], np.random.default_rng(2)
    text = f"tensor x[2] dense f64\ny = {name}(i) x[i]\noutput y"
    for states in itertools.product(STATES, repeat=2):
        with np.errstate(invalid="ignore"):
            results = row.array(*(fillings(rng, state) for state in states))
        known = float(analyse(parse(text), {"x": constant(np.array(states))}).known["y"])
        same = bool((results == results[0]).all()) and not np.isnan(results).any()
        assert (not math.isnan(known)) == same, (name, states)
        assert not same or known == results[0], (name, states)
