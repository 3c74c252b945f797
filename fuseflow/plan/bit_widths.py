"""Bit rounding: how many bits each entry of an operand needs, and to which widths of a machine they can be rounded up.

    entries  3  -100  0.5        need  3, 8 and 32 bits
    widths   4, 8, 32            options  32 | 4, 32 | 8, 32 | 4, 8, 32

An option is a set of widths, and each entry has the least of them that holds it. With more widths entries are narrower, but they are in
more parts.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.errors import PlanError
from fuseflow.tensors.dtypes import ElementType

Bits: TypeAlias = npt.NDArray[np.int64]

_MOST = 32
"""The bits of a number that is no integer of fewer bits."""


def needed_bits(values: npt.NDArray[Any]) -> Bits:
    """Return the bits that each value needs: the bits of the narrowest signed integer that is equal to it, or 32 if no integer of
    fewer bits is. 0 needs none.

    >>> needed_bits(np.array([0, 1, -1, 7, -8, 8, 0.5, 2.0**40])).tolist()
    [0, 2, 1, 4, 4, 5, 32, 32]
    """
    numbers = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        magnitudes = np.where(numbers < 0, -numbers - 1, numbers)  # -8 has as many bits as 7
        integral = (numbers == np.floor(numbers)) & (magnitudes < 2.0 ** (_MOST - 1))
    _, digits = np.frexp(np.where(integral, magnitudes, 0))
    return np.where(numbers == 0, 0, np.where(integral, digits + 1, _MOST)).astype(np.int64)


def round_up(bits: Bits, widths: Collection[int]) -> Bits:
    """Return for each entry the least of the widths that holds it, and 0 where no bits are needed. Raise `PlanError` for none.

    >>> round_up(np.array([0, 3, 8, 9]), (8, 16)).tolist()
    [0, 8, 8, 16]
    """
    ascending = np.array(sorted(widths), dtype=np.int64)
    most = int(bits.max(initial=0))
    if not len(ascending) or most > ascending[-1]:
        listed = ", ".join(map(str, ascending)) or "none"
        raise PlanError(f"an entry needs {most} bits, and the widths are {listed}", hint=f"add a width of at least {most}")
    places = np.searchsorted(ascending, bits)
    rounded: Bits = np.where(bits == 0, 0, ascending[places])
    return rounded


def rounding_options(bits: Bits, widths: Collection[int]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of widths to which entries can be rounded, sets with fewer widths first. Some entry is rounded to each
    width of a set, so that no two sets round all entries to the same widths. Raise `PlanError` if the widest does not hold every
    entry.

    >>> rounding_options(np.array([3, 8, 32]), (4, 8, 16, 32))
    ((32,), (4, 32), (8, 32), (16, 32), (4, 8, 32), (4, 16, 32))
    """
    needed = np.unique(bits[bits > 0])
    round_up(needed, widths)
    options = (option for count in range(1, len(widths) + 1) for option in combinations(sorted(set(widths)), count))
    holding = (option for option in options if needed.max(initial=0) <= option[-1])
    return tuple(option for option in holding if set(round_up(needed, option).tolist()) == set(option))


def held_exactly(values: npt.NDArray[Any], type: ElementType) -> npt.NDArray[np.bool_]:
    """Return which values a type holds without rounding.

    >>> from fuseflow.tensors import DTYPES
    >>> held_exactly(np.array([7, 8, 0.5]), DTYPES["i4"]).tolist()
    [True, False, False]
    """
    numbers = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        held: npt.NDArray[np.bool_] = type.hold(numbers).astype(np.float64) == numbers
    return held
