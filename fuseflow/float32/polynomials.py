"""The value of a polynomial in fixed point, by Horner's rule."""

from __future__ import annotations


def polynomial(coefficients: tuple[int, ...], first: int, degree: int, t: int, digits: int) -> int:
    """Return the value at t / 2**digits of the polynomial whose `degree` + 1 coefficients stand from `first` on, in their units.

    Each product is rounded down. All values fit into 44 bits, and `digits` are at most 29, but for values of fewer bits.

    >>> polynomial((100, 10), 0, 1, 1, 1)
    105
    """
    value = coefficients[first + degree]
    for k in range(degree - 1, -1, -1):
        value = coefficients[first + k] + (value * t >> digits)
    return value
