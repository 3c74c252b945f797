"""Instructions that look at many numbers at once, compiled for every level of this processor, compared with lists of Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from fuseflow.native.kernel_library import Library, user_store
from fuseflow.native.machine_code import Loader
from fuseflow.native.processor import host, host_levels
from fuseflow.native.records import (
    COMPILED,
    LANES,
    LONGEST,
    WORDS,
    address,
    at_most,
    bit_length,
    common,
    equal,
    latest,
    least,
    put,
    raise_by,
    zeros,
)
from fuseflow.native.signatures import Function, Signature, integers


def which(numbers: int, limit: int) -> int:
    return at_most(numbers, limit)


def smallest(numbers: int, indices: int, other: int, others: int) -> int:
    return least(numbers, indices, other, others)


def lift(numbers: int, others: int, added: int) -> None:
    raise_by(numbers, others, added)


def largest_sum(numbers: int, others: int) -> int:
    return latest(numbers, others)


def same(numbers: int, number: int) -> int:
    return equal(numbers, number)


def overlap(numbers: int, chosen: int) -> int:
    return common(numbers, chosen)


def replace(numbers: int, i: int, number: int) -> None:
    put(numbers, i, number)


def width(number: int) -> int:
    return bit_length(number)


Compile = Callable[[Function, Signature], Function]


@pytest.fixture(params=["python", "host", *host_levels()])
def compile_for(request: pytest.FixtureRequest) -> Compile:
    """Return what makes a function callable: for a level of x86-64, for this processor, or not at all."""
    if request.param == "python":
        return lambda function, signature: function
    if request.param == "host" or not COMPILED:
        return Library((), user_store()).compiled
    from fuseflow.native.numba_compiler import object_code, optimized_module

    loaders: list[Loader] = []  # code stays as long as its loader

    def compiled(function: Function, signature: Signature) -> Function:
        symbol = f"{function.__name__}_{request.param.replace('-', '_')}"
        loader = Loader(*host())
        loaders.append(loader)
        return signature.callable_at(
            loader.load(object_code(optimized_module(function, signature, symbol), request.param), symbol)
        )

    return compiled


def draws(source: random.Random, least_number: int = -LONGEST - 1) -> list[int]:
    return [
        max(source.choice((0, 1, -1, LONGEST, source.randrange(-100, 100), source.randrange(-LONGEST, LONGEST))), least_number)
        for _ in range(LANES)
    ]


def sets(source: random.Random) -> int:
    return source.choice((source.getrandbits(LANES), 1 << source.randrange(LANES), 1 << LANES - 1))


def test_which_numbers_are_at_most_a_limit(compile_for: Compile) -> None:
    source, found = random.Random(1), compile_for(which, integers(2))
    for _ in range(300):
        numbers = draws(source)
        limit = source.choice((*numbers, 0, 50))
        array = np.array(numbers, np.int16)
        assert found(address(array), limit) == sum((number <= limit) << k for k, number in enumerate(numbers))


def test_the_least_of_some_numbers(compile_for: Compile) -> None:
    source, found = random.Random(2), compile_for(smallest, integers(4))
    for _ in range(300):
        pairs = [(draws(source, 0), sets(source)) for _ in range(2)]
        (array, indices), (other, others) = ((np.array(numbers, np.int16), chosen) for numbers, chosen in pairs)
        members = [number for numbers, chosen in pairs for k, number in enumerate(numbers) if chosen >> k & 1]
        assert found(address(array), indices, address(other), others) == min(members, default=LONGEST)
        assert found(address(array), 0, address(other), 0) == LONGEST


def halves(source: random.Random) -> list[int]:
    """Numbers whose sums are short integers, too."""
    return [number // 2 for number in draws(source)]


def test_numbers_are_raised_to_others_and_none_behind_them(compile_for: Compile) -> None:
    source, found = random.Random(3), compile_for(lift, Signature(None, ("int64",) * 3))
    for _ in range(300):
        numbers, others, behind, added = draws(source), halves(source), draws(source), source.choice((0, 7, -(1 << 14), 1 << 14))
        array, other = np.array(numbers + behind, np.int16), np.array(others, np.int16)
        found(address(array), address(other), added)
        raised = [max(number, another + added) for number, another in zip(numbers, others, strict=True)]
        assert array.tolist() == raised + behind


def test_the_largest_sum(compile_for: Compile) -> None:
    source, found = random.Random(6), compile_for(largest_sum, integers(2))
    for _ in range(300):
        numbers, others = halves(source), halves(source)
        array, other = np.array(numbers, np.int16), np.array(others, np.int16)
        assert found(address(array), address(other)) == max(map(sum, zip(numbers, others, strict=True)))


def test_which_numbers_are_equal_or_have_a_bit_in_common(compile_for: Compile) -> None:
    source, found, found_common = random.Random(4), compile_for(same, integers(2)), compile_for(overlap, integers(2))
    for _ in range(300):
        numbers = [
            source.choice((0, 1, -1, 1 << source.randrange(31), source.randrange(-(1 << 31), 1 << 31))) for _ in range(WORDS)
        ]
        array, number, chosen = np.array(numbers, np.int32), source.choice(numbers), sets(source)
        bits = (1 << WORDS) - 1  # a compiled set is a signed word
        assert found(address(array), number) & bits == sum((other == number) << k for k, other in enumerate(numbers))
        expected = sum((other & chosen != 0) << k for k, other in enumerate(numbers))
        assert found_common(address(array), chosen) & bits == expected


def test_one_number_is_set(compile_for: Compile) -> None:
    found, array = compile_for(replace, Signature(None, ("int64",) * 3)), zeros(WORDS, np.int32)
    for k in random.Random(5).sample(range(WORDS), WORDS):
        expected = array.tolist()
        expected[k] = 1000 - 31 * k
        found(address(array), k, expected[k])
        assert array.tolist() == expected


def test_the_length_of_a_number_in_bits(compile_for: Compile) -> None:
    found = compile_for(width, integers(1))
    for number in (1, 2, 3, 63, 64, 65, 1 << 40, (1 << 62) - 1):
        assert found(number) == number.bit_length()
