"""The units of a printed circuit: which of them are for simulation only, and which are not written at all."""

from __future__ import annotations

from fuseflow.errors import HardwareError
from fuseflow.hardware.circuit import Circuit
from fuseflow.hardware.emit import called_units
from fuseflow.hardware.tools import LIBRARY, SIMULATION, library_text
from fuseflow.hardware.top import Top


def simulation_units(circuit: Circuit, top: Top) -> tuple[str, ...]:
    """Return the units of a circuit that are simulated, but cannot be synthesized."""
    if circuit.arithmetic.synthesizable:
        return ()
    units = called_units(unit.netlist for unit in top.units)
    return tuple(name for name in units if name.startswith(f"ff_{circuit.arithmetic.name}_"))


def require_units(top: Top) -> None:
    """Raise `HardwareError` if a unit is not written in SystemVerilog."""
    written = "".join(library_text(part) for part in (*LIBRARY, *SIMULATION))
    for unit in called_units(unit.netlist for unit in top.units):
        if f"({unit}," not in written and f"module {unit} " not in written:
            operator = unit.removeprefix("ff_").partition("_")[2]
            raise HardwareError(
                f"the operator `{operator}` has no unit in SystemVerilog for this arithmetic",
                hint="`--tool python` computes it in Python",
            )
