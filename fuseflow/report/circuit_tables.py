"""Tables of circuits: those that ran beside the simulator, and the areas of regions, of their parts, and of their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.hardware.area.circuit_area import CircuitArea
from fuseflow.hardware.area.parts import PartKind
from fuseflow.hardware.cosimulate import Cosimulation
from fuseflow.report.tables import add_footer, plain_table
from fuseflow.resources.gate_areas import GATE_EQUIVALENT

KIND_NAMES: dict[PartKind, str] = {
    "primitive": "control",
    "unit": "arithmetic",
    "fifo": "FIFO",
    "memory": "memory",
    "port": "memory port",
}
HEADINGS = ("control\narea", "arithmetic\narea", "FIFO\narea", "memory\narea", "port\narea")
"""The headings of the columns, one for each kind of part of a circuit."""
COUNTS = ("nodes", "hops", "modules", "firings", "cycles", "simulator_cycles", "tokens")
"""The counts of a circuit that ran beside the simulator."""


def area_table(areas: Sequence[CircuitArea]) -> Table:
    """Return a table of the areas of circuits, with a row for each region, and the sum of all."""
    table = plain_table("region", "nodes", *HEADINGS, "area", "memory\nbits", numbers_from=1, footer=len(areas) > 1)
    for area in areas:
        table.add_row(escape(area.name), *_cells([area]))
    if len(areas) > 1:
        add_footer(table, "total", *_cells(areas))
    return table


def _cells(areas: Sequence[CircuitArea]) -> tuple[str, ...]:
    by_area = ((area.nodes, *map(area.of_kind, KIND_NAMES), area.total, area.memory_bits) for area in areas)
    return tuple(f"{sum(numbers):,.0f}" for numbers in zip(*by_area, strict=True))


def area_lines(areas: Sequence[CircuitArea]) -> Iterator[str]:
    """Yield the notes that a reader of the tables needs: the unit, and the parts that are left out."""
    technology = areas[0].technology if areas else ""
    if all(area.unit == "GE" for area in areas):
        square = sum(area.total for area in areas) * GATE_EQUIVALENT / 1e6
        yield f"in gate equivalents of {technology}: {square:,.3f} mm² of gates and memories, without wires"
    else:
        yield f"in the unit of the library {escape(technology)}; memories have no cells in it and are left out, as are wires"


def part_table(areas: Sequence[CircuitArea]) -> Table:
    """Return a table with a row for each different part of each region, the largest first."""
    columns = ("region", "kind of part", "part is", "instances", "flip-flops\nof one", "area\nof one", "area")
    table = plain_table(*columns, numbers_from=3)
    for area in areas:
        for row in sorted(area.parts, key=lambda row: -row.total):
            numbers = f"{row.count:,}", f"{row.flip_flops:,}", f"{row.area:,.0f}", f"{row.total:,.0f}"
            table.add_row(escape(area.name), KIND_NAMES[row.part.kind], escape(row.part.name), *numbers)
    return table


def node_table(areas: Sequence[CircuitArea]) -> Table:
    """Return a table with a row for each node of each region, the largest first. The FIFOs at its inputs and its units belong to it."""
    table = plain_table("region", "node", "area", numbers_from=2)
    for area in areas:
        for node, total in sorted(area.by_node.items(), key=lambda item: -item[1]):
            table.add_row(escape(area.name), escape(node), f"{total:,.0f}")
    return table


def cosimulation_json(model: str, machine: str, tool: str, rows: Sequence[Cosimulation]) -> dict[str, Any]:
    """Return the comparisons of circuits with the simulator as plain values (schema 1)."""
    regions = [
        {
            "name": row.name,
            **{count: getattr(row, count) for count in COUNTS},
            "difference": None if row.difference is None else asdict(row.difference),
            "hanging": list(row.hanging),
            "simulation_only": list(row.simulation_only),
        }
        for row in rows
    ]
    return {"schema": 1, "model": model, "machine": machine, "tool": tool, "regions": regions}


def cosimulation_table(rows: Sequence[Cosimulation]) -> Table:
    """Return a table with a row for each region whose circuit ran beside the simulator."""
    columns = ("nodes", "hops", "modules", "firings", "cycles of circuit", "of simulator", "tokens compared")
    by_count = dict(zip(COUNTS, columns, strict=True))
    shown = {count: head for count, head in by_count.items() if count != "hops" or any(row.hops for row in rows)}
    table = plain_table("region", "circuit is", *shown.values(), "seconds", numbers_from=2)
    for row in rows:
        verdict = "different" if row.difference is not None else "equal, deadlock" if row.waiting else "equal"
        table.add_row(row.name, verdict, *(f"{getattr(row, count):,}" for count in shown), f"{row.seconds:.1f}")
    return table
