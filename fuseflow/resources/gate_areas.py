"""The areas of gates and of bits of memory, and the gate equivalent: the area of a NAND of two inputs.

The areas come from the smallest cells of the Nangate 45 nm Open Cell Library, in square micrometres: the width times the height
of each macro in `NangateOpenCellLibrary.macro.lef`, of the platform nangate45 of OpenROAD-flow-scripts. For example, `DFF_X1` is
3.23 x 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TECHNOLOGY = "Nangate 45 nm"
FLIP_FLOP = "$_DFF_P_"
SQUARE_MICROMETRES: Mapping[str, float] = MappingProxyType(
    {
        "$_NOT_": 0.38 * 1.4,
        "$_NAND_": 0.57 * 1.4,
        "$_NOR_": 0.57 * 1.4,
        "$_AND_": 0.76 * 1.4,
        "$_OR_": 0.76 * 1.4,
        "$_XOR_": 1.14 * 1.4,
        "$_XNOR_": 1.14 * 1.4,
        "$_MUX_": 1.33 * 1.4,
        "$_AOI3_": 0.76 * 1.4,
        "$_OAI3_": 0.76 * 1.4,
        FLIP_FLOP: 3.23 * 1.4,
    }
)
"""The area of each gate that yosys may use, by its name in yosys."""
GATE_EQUIVALENT = SQUARE_MICROMETRES["$_NAND_"]
"""The area of one gate equivalent, in square micrometres."""

MEMORY_BIT = 0.66
"""The area of a bit of an on-chip memory, in square micrometres, with its share of decoders and amplifiers. It is the mean of four
memories of 45 nm that come with the same platform (`fakeram45`): 794.5 for 32 words of 32 bits, 1,240.6 for 64 of 32, 6,476 for 256 of 34,
and 16,406 for 1,024 of 32, which are 0.50 to 0.78 a bit."""


def gate_area(cells: Mapping[str, int]) -> float:
    """Return the area of gates (numbers by name) in square micrometres. Raises `KeyError` for a gate that is not in the table."""
    return sum(SQUARE_MICROMETRES[name] * count for name, count in cells.items())
