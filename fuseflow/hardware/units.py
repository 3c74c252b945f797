"""The units of a printed circuit: which are for simulation only, and which have no SystemVerilog."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fuseflow.errors import HardwareError
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.emit import called_units
from fuseflow.hardware.netlist import netlist
from fuseflow.hardware.tools import CHANNEL_MEMORY, DELAY, PORT, WIDE_UNITS, has_library, library_text
from fuseflow.hardware.top import Top

_INSIDE = re.compile(rf"\b(?:ff_f32_\w+|{'|'.join(file.removesuffix('.sv') for file in (CHANNEL_MEMORY, DELAY))})\b")
"""A pattern for the names of modules that other modules have inside them."""


def simulation_units(circuit: Circuit, top: Top) -> tuple[str, ...]:
    """Return the units of a circuit that are simulated, but cannot be synthesized."""
    if circuit.arithmetic.synthesizable:
        return ()
    units = called_units(unit.netlist for unit in top.units)
    return tuple(name for name in units if name.startswith(f"ff_{circuit.arithmetic.name}_"))


def library_sources(top: Top) -> list[str]:
    """Return the files of the folder `sv` that a circuit needs: for its channels, its memories, the units that it calls, and the
    units inside those units. Raises `HardwareError` if a unit is not written in SystemVerilog."""
    reads = {len(memory_reads) for unit in top.units for memory_reads in unit.netlist.reads().values()}
    streams = [*dict.fromkeys(channel.module for channel in top.channels), *([PORT.removesuffix(".sv")] if top.ports else [])]
    memories = [f"ff_memory{count}" for count in reads]
    return library_closure([*streams, *memories, *called_units(unit.netlist for unit in top.units)])


def library_closure(modules: Iterable[str]) -> list[str]:
    """Return the files of the folder `sv` that have some modules and the modules inside of them, sorted. Raises `HardwareError`
    if a module is not written in SystemVerilog."""
    files: dict[str, None] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        file = _library_file(name)
        if file in files:
            continue
        files[file] = None
        waiting += sorted(set(_INSIDE.findall(library_text(file))) - {name})
    return sorted(files)


def require_units(circuit: Circuit) -> None:
    """Raise `HardwareError` if a circuit calls a unit that is not written in SystemVerilog."""
    for name in called_units(netlist(unit.module) for unit in circuit.units):
        _library_file(name)


def _library_file(unit: str) -> str:
    """Return the file of the folder `sv` that has a unit. Raises `HardwareError` if there is none."""
    if not unit.startswith("ff_f64_"):
        if has_library(f"{unit}.sv"):
            return f"{unit}.sv"
    elif f"({unit}," in library_text(WIDE_UNITS) or f"module {unit} " in library_text(WIDE_UNITS):
        return WIDE_UNITS
    raise _absent(unit)


def _absent(unit: str) -> HardwareError:
    format_name, _, operator = unit.removeprefix("ff_").partition("_")
    return HardwareError(
        f"the operator `{operator}` has no unit of {format_name} in SystemVerilog", hint="`cosimulate --tool python` computes it"
    )
