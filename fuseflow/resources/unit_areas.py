"""What units take, in gate equivalents: areas of a NAND of two inputs. Made by `tools/area_weights.py`.

The gates are those of Yosys 0.23, and their areas those of Nangate 45 nm (fuseflow/resources/gate_areas.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class FifoArea(NamedTuple):
    """The law of the area of a FIFO: what it takes at least, more for each bit of an address, for each bit in flip-flops, for a memory
    beside its bits, and for each bit in the registers of its latency."""

    fixed: float
    address_bit: float
    slot_bit: float
    deep: float
    latency_bit: float


OPERATOR: Mapping[str, int] = MappingProxyType(
    {
        "abs": 67,
        "add": 2241,
        "copy": 65,
        "cos": 81391,
        "div": 9951,
        "eq": 206,
        "erf": 47274,
        "exp": 28997,
        "ge": 308,
        "gt": 304,
        "le": 294,
        "log": 41485,
        "lt": 303,
        "max": 413,
        "min": 423,
        "mul": 6566,
        "ne": 202,
        "nearest": 2765,
        "nearest_finite": 3568,
        "neg": 66,
        "pow": 71421,
        "relu": 106,
        "rsqrt": 23909,
        "saturate": 1908,
        "sigmoid": 50511,
        "sin": 81618,
        "sqrt": 3897,
        "sub": 2215,
        "tanh": 69490,
        "threshold": 297,
        "where": 179,
        "fold_max": 410,
        "fold_min": 414,
        "fold_prod": 6526,
        "fold_sum": 2240,
    }
)
"""The combinational unit of each operator, and of each reduction (`fold_sum`), in floats of 32 bits."""
PORT = 929
"""The area of a port at the memory, as large as `outstanding: 32` makes it."""
SHALLOW_SLOTS = 8
"""The most slots of a FIFO that are flip-flops. More lie in a memory."""
FIFO = FifoArea(fixed=-1.75, address_bit=56.49, slot_bit=10.01, deep=9.47, latency_bit=5.75)
