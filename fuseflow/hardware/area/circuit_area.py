"""The area of a circuit: the sum of its parts, each synthesized once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuseflow.hardware.area.parts import CircuitParts, Part, PartKind
from fuseflow.hardware.area.synthesis import Cells, KeptCells, Liberty, synthesize, version
from fuseflow.hardware.circuit import Circuit
from fuseflow.loop_progress import counted
from fuseflow.resources.gate_areas import FLIP_FLOP, GATE_EQUIVALENT, MEMORY_BIT, TECHNOLOGY, gate_area


@dataclass(frozen=True, slots=True)
class PartArea:
    """The area, flip-flops and bits of memory of one part, and `count`, the number of such parts."""

    part: Part
    count: int
    area: float
    flip_flops: int
    bits: int = 0

    @property
    def total(self) -> float:
        return self.count * self.area


@dataclass(frozen=True, slots=True, eq=False)
class CircuitArea:
    """The area of the circuit of a graph, part by part, in gate equivalents. With a library of the user the area is in the unit
    of the library, mostly square micrometres, and memories are left out, since a library of gates has none."""

    name: str
    nodes: int
    unit: str
    technology: str
    parts: tuple[PartArea, ...]
    by_node: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(part.total for part in self.parts)

    def of_kind(self, kind: PartKind) -> float:
        """Return the area of all parts of a kind."""
        return sum(part.total for part in self.parts if part.part.kind == kind)

    @property
    def memory_bits(self) -> int:
        return sum(part.count * part.bits for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return the area as a JSON object, with a row for each part and the area of each node."""
        return {
            "region": self.name,
            "nodes": self.nodes,
            "unit": self.unit,
            "technology": self.technology,
            "total": round(self.total, 1),
            "memory_bits": self.memory_bits,
            "parts": [
                {
                    "kind": row.part.kind,
                    "name": row.part.name,
                    "parameters": row.part.values,
                    "count": row.count,
                    "area": round(row.area, 2),
                    "flip_flops": row.flip_flops,
                    "total": round(row.total, 1),
                }
                for row in self.parts
            ],
            "nodes_area": {name: round(area, 1) for name, area in self.by_node.items()},
        }


def circuit_areas(circuits: Sequence[Circuit], liberty: Liberty | None = None) -> Iterator[CircuitArea]:
    """Yield the area of each circuit. Parts that were not synthesized before are synthesized, and their cells are cached.

    Raises `HardwareError` if yosys is not installed, if yosys refuses a module, or if a FIFO has no bound.
    """
    kept = KeptCells.of(version(), liberty)
    for circuit in counted(circuits, "synthesizing regions"):
        yield _area(CircuitParts.of(circuit), kept, liberty)


def _area(parts: CircuitParts, kept: KeptCells, liberty: Liberty | None) -> CircuitArea:
    total = parts.total
    gates = [part for part in total if part.kind != "memory"]
    known = {part: cells for part in gates if (cells := kept.read(part)) is not None}
    made = synthesize(parts, [part for part in gates if part not in known], liberty)
    for part, cells in made.items():
        kept.write(part, cells)
    known |= made
    areas = {part: _part_area(part, count, known.get(part), liberty) for part, count in total.items()}
    by_node = {node: sum(areas[part].area * count for part, count in own.items()) for node, own in parts.by_node.items()}
    graph = parts.circuit.graph
    unit, technology = ("GE", TECHNOLOGY) if liberty is None else ("area", liberty.name)
    return CircuitArea(graph.name, graph.node_count, unit, technology, tuple(areas.values()), by_node)


def _part_area(part: Part, count: int, cells: Cells | None, liberty: Liberty | None) -> PartArea:
    if part.kind == "memory":
        bits = part.values["N"] * part.values["W"]
        return PartArea(part, count, 0.0 if liberty else bits * MEMORY_BIT / GATE_EQUIVALENT, 0, bits)
    assert cells is not None, "what is no memory is synthesized"
    flip_flops = {FLIP_FLOP} if liberty is None else liberty.flip_flops
    stored = sum(number for name, number in cells.counts.items() if name in flip_flops)
    area = gate_area(cells.counts) / GATE_EQUIVALENT if cells.area is None else cells.area
    return PartArea(part, count, area, stored)
