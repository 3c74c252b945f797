"""The output of a circuit for users: its MLIR text, or a directory of SystemVerilog with a list of its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fuseflow.errors import HardwareError
from fuseflow.filesystem import list_files, replace_directory
from fuseflow.hardware.circuit import Circuit, build_circuit
from fuseflow.hardware.emit import called_units
from fuseflow.hardware.rtl_simulators import library_text
from fuseflow.hardware.top import Top, emit_circuit
from fuseflow.hardware.verilog import library_sources, simulation_units, to_verilog
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n

MANIFEST = "circuit.json"
"""The file that describes a directory of SystemVerilog."""
FILE_LIST = "files.f"
"""The file that lists the sources in the order in which tools read them: `verilator -f files.f`, `iverilog -c files.f`."""
LINK_DEPTH = 16
"""The slots of the FIFO between the processes of a node with workspaces, where the machine has no bound."""


def bounded_circuit(graph: n.Graph, machine: Machine) -> Circuit:
    """Return the circuit of a graph, with a bound for the FIFOs inside of nodes. A FIFO that the machine may deepen has its starting
    depth."""
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
