"""The output of a circuit for users: its MLIR text, or a directory of SystemVerilog with a list of its files. CIRCT prints the modules of
the circuit, and the folder `sv` has the files that they need.

This is the only file that needs `pycde`, the extra `hardware`. The MLIR of `pycde` lives in one process with the MLIR of `torch_mlir`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fuseflow.errors import HardwareError
from fuseflow.filesystem import list_files, replace_directory
from fuseflow.hardware.circuit import Circuit, build_circuit, channel_modules
from fuseflow.hardware.emit import called_units
from fuseflow.hardware.rtl_simulators import BANK, CHANNEL_MEMORY, DELAY, PORT, WIDE_UNITS, has_library, library_text
from fuseflow.hardware.rule_netlist import netlist
from fuseflow.hardware.scratchpad_top import SCRATCHPAD, SENT, STORE
from fuseflow.hardware.top import Top, emit_circuit
from fuseflow.machine.machine import Machine
from fuseflow.requirements import install_command
from fuseflow.samml import nodes as n

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


MANIFEST = "circuit.json"
"""The file that describes a directory of SystemVerilog."""
FILE_LIST = "files.f"
"""The file that lists the sources in the order in which tools read them: `verilator -f files.f`, `iverilog -c files.f`."""
LINK_DEPTH = 16
"""The slots of the FIFO between the processes of a node with workspaces, where the machine has no bound."""


def bounded_circuit(graph: n.Graph, machine: Machine) -> Circuit:
    """Return the circuit of a graph with bounded FIFOs inside of nodes. A FIFO that the machine may deepen has its starting depth."""
    circuit = build_circuit(graph, machine)
    return circuit.bounded({}, {unit.node.name: LINK_DEPTH for unit in circuit.units})


def circuit_text(graph: n.Graph, machine: Machine) -> str:
    """Return the circuit of a graph as MLIR text, in the dialects hw, comb and seq."""
    return emit_circuit(bounded_circuit(graph, machine)).text


def save_verilog(
    directory: str | Path, graphs: Sequence[n.Graph], machine: Machine, places: Mapping[str, Mapping[str, object]] | None = None
) -> None:
    """Write a directory with the SystemVerilog of each graph, the modules that all of them use, and `files.f`, which lists these
    files. `places` has what `circuit.json` is to say of where each graph lies, by its name.

    The directory appears when it is complete. An existing directory that was written this way and holds nothing else is replaced.
    Raises `FileError` for any other directory, and `HardwareError` if a graph has no circuit.
    """
    circuits = [(circuit, emit_circuit(circuit)) for circuit in (bounded_circuit(graph, machine) for graph in graphs)]
    names = [top.name for _, top in circuits]
    if len(set(names)) != len(names):
        raise HardwareError(f"two regions have one name in SystemVerilog: {', '.join(sorted(names))}")
    regions, sources = [], dict[str, str]()
    for number, (circuit, top) in enumerate(circuits, 1):
        file = f"{number:02}-{top.name}.sv"
        units = simulation_units(circuit, top)
        sources |= {part: library_text(part) for part in library_sources(top)}
        sources[file] = to_verilog(top.text)
        regions.append({**_region(circuit, top, file, units), **(places or {}).get(circuit.graph.name, {})})
    with replace_directory(directory, MANIFEST) as folder:
        for name, text in {**sources, FILE_LIST: "".join(f"{name}\n" for name in sources)}.items():
            (folder / name).write_text(text, encoding="utf-8")
        about = {"schema": 1, "machine": machine.name, "regions": regions, "files": list_files(folder)}
        (folder / MANIFEST).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def _region(circuit: Circuit, top: Top, file: str, units: tuple[str, ...]) -> dict[str, object]:
    """Return the entry of a region in the manifest. `units` are those that cannot be synthesized."""
    scratchpad = {} if top.scratchpad is None else {"scratchpad": dict(top.scratchpad.parameters)}
    return {
        "name": circuit.graph.name,
        "top": top.name,
        "file": file,
        "nodes": circuit.graph.node_count,
        **({"hops": circuit.graph.hop_count} if circuit.graph.hop_count else {}),
        "modules": len({unit.module for unit in top.units}),
        "units": list(called_units(unit.netlist for unit in top.units)),
        "simulation_only": list(units),
        "ports": [  # the names of the wires of a port begin with `wires`
            {"wires": port.name, "node": port.node, "array": port.kind, "writes": port.write, "number": port.number}
            for port in top.ports
        ],
        **scratchpad,
    }
