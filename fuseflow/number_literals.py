"""Numbers in the text forms of programs and graphs."""

from __future__ import annotations

import math


def show_number(value: float) -> str:
    """Return the shortest text that reads back as the same float: `1`, `0.5`, `1e-5`, `-inf`."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e16:
        return "-0" if value == 0 and math.copysign(1, value) < 0 else str(int(value))
    mantissa, e, exponent = repr(float(value)).partition("e")
    return f"{mantissa}e{int(exponent)}" if e else mantissa
