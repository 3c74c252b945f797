"""The functions of words: within 1 ulp of mpmath, with the special values of C."""

from __future__ import annotations

import math
import runpy
import sys
from itertools import product
from pathlib import Path
from typing import Any

import float_units as fu
import numpy as np
import pytest

from fuseflow.float32.functions import FUNCTIONS
from fuseflow.float32.operator_precision import scalar_function
from fuseflow.float32.words import NAN, value_of, word_of
from fuseflow.ops import OPERATORS, operator

ROOT = Path(__file__).resolve().parents[2]
SPECIAL = (0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e30, -1e30, 1e-40, -1e-40)


@pytest.mark.parametrize("name", fu.WITHIN_1_ULP)
def test_functions_are_within_1_ulp(name: str) -> None:
    a, b = fu.function_words(name, np.random.default_rng(11), 1500)
    for words in zip(a.tolist(), b.tolist(), strict=True):
        operands = words[: OPERATORS[name].arity]
        result = FUNCTIONS[name](*operands)
        error = fu.ulps(name, [value_of(word) for word in operands], value_of(result))
        assert error < 0.65, (name, operands)


@pytest.mark.parametrize("name", fu.WITHIN_1_ULP)
def test_special_values_are_those_of_the_table(name: str) -> None:
    """The operator in 64-bit floats, rounded, has the same infinities, zeros with their signs, and NaN."""
    row = operator(name)
    for operands in product(map(_single, SPECIAL), repeat=row.arity):
        expected, given = _single(row.scalar(*operands)), scalar_function(row, "f32")(*operands)
        if math.isfinite(expected) and expected != 0:
            assert given == pytest.approx(expected, rel=2**-22, abs=2**-149), operands
        else:
            assert word_of(given) == word_of(expected), (name, operands, given, expected)


def test_every_nan_is_the_same_word() -> None:
    for name, function in FUNCTIONS.items():
        for nan in (0x7F800001, 0xFFC00000, 0xFFFFFFFF):
            assert function(*[nan] * OPERATORS[name].arity) == NAN, name


@pytest.mark.parametrize("name", fu.ROUNDED)
def test_rounding_a_64_bit_result_once_is_correct_rounding(name: str) -> None:
    """NumPy computes in 32 bits. Subnormal results are among them."""
    rng = np.random.default_rng(5)
    a, b, _ = fu.random_words(rng, 3000)
    edges = fu.edge_words(400)
    a, b = np.concatenate([a, rng.choice(edges, 3000)]), np.concatenate([b, rng.choice(edges, 3000)])
    step = scalar_function(operator(name), "f32")
    pairs = zip(_numbers(a), _numbers(b), strict=True)
    given = [word_of(step(*pair[: operator(name).arity])) for pair in pairs]
    np.testing.assert_array_equal(given, fu.by_numpy(name, a, b))


def test_narrow_floats_are_those_of_numpy_and_the_table() -> None:
    step, least = (word_of(x) for x in (2.0**-10, 2.0**-24))
    a, _, _ = fu.random_words(np.random.default_rng(9), 4000)
    a = np.concatenate([a, fu.words_of(np.random.default_rng(9).normal(size=4000) * 2.0 ** np.linspace(-30, 18, 4000))])
    with np.errstate(all="ignore"):
        expected = fu.words_of(fu.floats(a).astype(np.float16))
    assert [FUNCTIONS["nearest"](word, step, least) for word in a.tolist()] == expected.tolist()
    for k, x in enumerate(np.random.default_rng(4).normal(size=300).tolist()):
        values = [_single(x), 2.0 ** -(k % 23), 2.0 ** -(k % 40)]
        assert scalar_function(operator("nearest"), "f32")(*values) == operator("nearest").scalar(*values)


def test_narrow_floats_without_infinities_are_those_of_the_table() -> None:
    """Of the types e4m3 and e2m1, and of others, on words and numbers of all magnitudes."""
    words, _, _ = fu.random_words(np.random.default_rng(9), 2000)
    numbers = np.random.default_rng(5).normal(size=2000) * 2.0 ** np.linspace(-30, 18, 2000)
    for step, greatest in ((2.0**-3, 448.0), (2.0**-1, 6.0), (2.0**-2, 28.0), (2.0**-3, 7.5)):
        for x in (*_numbers(words), *map(_single, numbers.tolist())):
            given = FUNCTIONS["nearest_finite"](word_of(x), word_of(step), word_of(greatest))
            assert given == word_of(operator("nearest_finite").scalar(x, step, greatest))


def test_kernels_compute_what_python_does() -> None:
    a, b, c = fu.random_words(np.random.default_rng(2), 400)
    numbers = [_numbers(words) for words in (a, b, c)]
    for name, row in OPERATORS.items():
        step = scalar_function(row, "f32")
        plain = [word_of(step(*operands)) for operands in zip(*numbers[: row.arity], strict=True)]
        np.testing.assert_array_equal(plain, fu.by_simulator(name, a, b, c), name)


def test_the_tables_are_those_that_the_tool_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["float32_curves.py", "--check"])
    runpy.run_path(str(ROOT / "tools" / "float32_curves.py"), run_name="__main__")


def _single(x: float) -> Any:
    with np.errstate(all="ignore"):
        return float(np.float32(x))


def _numbers(words: fu.Words) -> list[float]:
    with np.errstate(all="ignore"):
        return fu.floats(words).astype(float).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in fu.WITHIN_1_ULP if name in fu.IN_64_BITS])
def test_functions_on_every_hundredth_word(name: str) -> None:
    """Within 1 ulp of the functions of 64 bits."""
    for first in range(0, 1 << 32, 50_000_000):
        words = np.arange(first, min(first + 50_000_000, 1 << 32), 100, dtype=np.uint64).astype(np.uint32)
        errors = fu.ulps_in_64_bits(name, words)
        assert errors.max() < 1, hex(words[errors.argmax()])
