"""The SystemVerilog of a circuit: its modules, which CIRCT prints from their MLIR text, and the files of the folder `sv` that they need.

This is the only file that needs `pycde`, the extra `hardware`. The MLIR of `pycde` lives in one process with the MLIR of `torch_mlir`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from fuseflow.errors import HardwareError
from fuseflow.hardware.circuit import Circuit, channel_modules
from fuseflow.hardware.emit import called_units
from fuseflow.hardware.rtl_simulators import BANK, CHANNEL_MEMORY, DELAY, PORT, WIDE_UNITS, has_library, library_text
from fuseflow.hardware.rule_netlist import netlist
from fuseflow.hardware.scratchpad_top import SCRATCHPAD, SENT, STORE
from fuseflow.hardware.top import Top
from fuseflow.requirements import install_command

STYLE = "disallowLocalVariables,disallowPackedArrays,locationInfoStyle=none,emittedLineLength=132"
HEADER = """// Printed by fuseflow. A node looks at some bits of the tokens that come to it, and the modules of a region stand in one file.
// An output that no node of the graph reads is not connected.
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off PINCONNECTEMPTY */
/* verilator lint_off DECLFILENAME */
"""
PASSES = "builtin.module(canonicalize,cse,lower-seq-to-sv,hw.module(prettify-verilog))"
_INSIDE = re.compile(rf"\b(?:ff_f32_\w+|{'|'.join(file.removesuffix('.sv') for file in (CHANNEL_MEMORY, DELAY, BANK))})\b")
"""A pattern for the names of modules that other modules have inside them."""


def to_verilog(text: str) -> str:
    """Return the SystemVerilog of a circuit, given as MLIR text. Raises `HardwareError` if `pycde` is not installed."""
    circt = _circt()
    ir, passmanager = circt.ir, circt.passmanager
    with ir.Context() as context, ir.Location.unknown():
        circt.register_dialects(context)
        module = ir.Module.parse(text)
        module.operation.attributes["circt.loweringOptions"] = ir.StringAttr.get(STYLE)
        passmanager.PassManager.parse(PASSES).run(module.operation)
        output = io.StringIO()
        circt.export_verilog(module, output)
        return HEADER + output.getvalue()


def require_circt() -> None:
    """Raise `HardwareError` if `pycde` is not installed, so that a command fails before its work and not after it."""
    if find_spec("pycde") is None:
        _circt()


def _circt() -> Any:
    try:
        import pycde.circt as circt
        from pycde.circt import ir, passmanager  # noqa: F401  (they become attributes of it)
    except ImportError as error:
        raise HardwareError(
            f"SystemVerilog is printed by CIRCT, and `pycde` is not there ({error})",
            hint=f"{install_command('pycde')}; `--emit hw` and `cosimulate --tool python` do without it",
        ) from error
    return circt


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
    streams = [*channel_modules(top.channels), *([PORT.removesuffix(".sv")] if top.ports else [])]
    streams += [] if top.scratchpad is None else [SCRATCHPAD]
    streams += [] if top.store is None else [SENT, STORE]
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
    format_name, _, operator = unit.removeprefix("ff_").partition("_")
    raise HardwareError(
        f"the operator `{operator}` has no unit of {format_name} in SystemVerilog", hint="`cosimulate --tool python` computes it"
    )
