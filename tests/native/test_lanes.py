"""Instructions that look at many numbers at once, compiled for every level of this processor, compared with lists of Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from fuseflow.native.kernel_library import Library, user_store
from fuseflow.native.machine_code import Loader
from fuseflow.native.processor import host, host_levels
from fuseflow.native.records import COMPILED, LANES, Raise, address, at_most, bit_length, least, least_int32
from fuseflow.native.signatures import Function, Signature, integers

raise_all, raise_pc = Raise(LANES, 8), Raise(16, 4)
LARGE = 1 << 62


def which(numbers: int, limit: int) -> int:
    return at_most(numbers, limit)


def smallest(numbers: int, places: int) -> int:
    return least(numbers, places)


def smallest_int32(numbers: int, places: int) -> int:
    return least_int32(numbers, places)


def lift(numbers: int, place: int, own: int, near: int, far: int) -> None:
    raise_all(numbers, place, own, near, far)


def lift_pc(numbers: int, place: int, own: int, near: int, far: int) -> None:
    raise_pc(numbers, place, own, near, far)


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


def draws(source: random.Random) -> list[int]:
    return [
        source.choice((0, 1, -1, LARGE, -LARGE, source.randrange(-100, 100), source.randrange(-LARGE, LARGE)))
        for _ in range(LANES)
    ]


def test_which_numbers_are_at_most_a_limit(compile_for: Compile) -> None:
    source, found = random.Random(1), compile_for(which, integers(2))
    for _ in range(300):
        numbers = draws(source)
        limit = source.choice((*numbers, 0, 50))
        array = np.array(numbers)
        assert found(address(array), limit) == sum((number <= limit) << k for k, number in enumerate(numbers))


def test_the_least_of_some_numbers(compile_for: Compile) -> None:
    source, found, found_int32 = random.Random(2), compile_for(smallest, integers(2)), compile_for(smallest_int32, integers(2))
    for _ in range(300):
        numbers, places = draws(source), source.choice((source.getrandbits(LANES), 1 << source.randrange(LANES), 1 << 31))
        chosen = [number for k, number in enumerate(numbers) if places >> k & 1]
        array, narrow = np.array(numbers), np.array([number >> 32 for number in numbers], np.int32)
        assert found(address(array), places) == min(chosen)
        assert found_int32(address(narrow), places) == min(number >> 32 for number in chosen)
    assert found(address(array), 0) == 2**63 - 1
    assert found_int32(address(narrow), 0) == 2**31 - 1


def test_numbers_are_raised_to_limits_and_none_behind_them(compile_for: Compile) -> None:
    source = random.Random(3)
    for function, count, group in ((lift, LANES, 8), (lift_pc, 16, 4)):
        found = compile_for(function, Signature(None, ("int64",) * 5))
        for _ in range(100):
            numbers, place = draws(source), source.randrange(count)
            own, near, far = source.choices((*numbers, 7), k=3)
            first = place - place % group
            limits = [far] * count
            limits[first : first + group] = [near] * group
            limits[place] = own
            array = np.array(numbers)
            found(address(array), place, own, near, far)
            assert array.tolist() == [*map(max, numbers, limits), *numbers[count:]]


def test_the_length_of_a_number_in_bits(compile_for: Compile) -> None:
    found = compile_for(width, integers(1))
    for number in (1, 2, 3, 63, 64, 65, 1 << 40, (1 << 62) - 1):
        assert found(number) == number.bit_length()
