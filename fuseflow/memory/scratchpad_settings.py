"""The settings of a scratchpad: a memory on the chip, beside the memory of the machine (docs/explanation/memory.md)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from fuseflow.byte_sizes import BYTES_HINT, parse_bytes
from fuseflow.memory.setting_types import MOST_LATENCY, MOST_LINE, Strict, number_in

WORDS = tuple(1 << k for k in range(2, MOST_LINE.bit_length()))
"""The bytes that a port of a bank may move in a cycle."""
MOST_BANKS, MOST_PORTS = 4096, 64


def _size(value: Any) -> Any:
    try:
        return parse_bytes(str(value))
    except ValueError as error:
        raise PydanticCustomError("bytes", str(error).replace("{", "{{").replace("}", "}}"), {"hint": BYTES_HINT}) from error


class Scratchpad(Strict):
    """A scratchpad of `bytes` bytes in `banks` banks. Each of the `ports` of a bank starts one access in a cycle, to a word of
    `bytes_a_cycle` bytes, which is done `latency` cycles later. Word n is in bank n mod `banks`."""

    bytes: Annotated[int, BeforeValidator(_size, json_schema_input_type=int | str)]
    banks: Annotated[int, number_in(range(1, MOST_BANKS + 1), f"must be a whole number of banks, 1 to {MOST_BANKS:,}")] = 16
    ports: Annotated[
        int, number_in(range(1, MOST_PORTS + 1), f"must be a whole number of ports of a bank, 1 to {MOST_PORTS}")
    ] = 1
    latency: Annotated[int, number_in(range(1, MOST_LATENCY + 1), f"must be a whole number of cycles, 1 to {MOST_LATENCY:,}")] = 4
    bytes_a_cycle: Annotated[
        int, number_in(WORDS, f"must be a power of two of bytes, from {WORDS[0]} to {MOST_LINE:,}: the word of a bank")
    ] = 64

    @property
    def words_a_cycle(self) -> int:
        """The largest number of accesses that start in a cycle."""
        return self.banks * self.ports


def scratchpad_settings(value: Any) -> Any:
    """Return the settings of a scratchpad in a machine file (`value`) as a mapping. The file may also have its bytes alone."""
    return {"bytes": value} if isinstance(value, int | str) and not isinstance(value, bool) else value
