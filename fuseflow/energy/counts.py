"""The events of a graph that take energy: operators, bits through FIFOs and workspaces, gates that switch, accesses to the DRAM.

The counts are sums over nodes and FIFOs, from the counters of a simulation or the expectations of an estimate. Nothing is counted
only for the energy, so a run is the same with and without energies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, assert_never

from fuseflow.errors import EnergyError
from fuseflow.machine.machine import Machine
from fuseflow.memory.buffer_assignment import preloaded_readers
from fuseflow.memory.dram_table import DramTable
from fuseflow.memory.settings import DramMemory
from fuseflow.ops import operator, reducer
from fuseflow.resources.area import AreaCount, memory_area
from fuseflow.resources.graph_resources import HeldEntries, has_sram_fifo, holds_sram, sram_bits
from fuseflow.samml import nodes as n
from fuseflow.samml.node import operand_bits
from fuseflow.tile_ops import TILE_OPERATORS, work_count

Number = float
"""A count. It is a whole number where it is exact."""
READS_AND_WRITES: Mapping[type[n.Node], int] = {n.Accumulate: 1, n.Permute: 0, n.Select: 0}
"""The entries that a workspace reads when it takes a value: an accumulator reads the one that it adds to."""


@dataclass(frozen=True, slots=True)
class MemoryBits:
    """Bits that are written to memories on the chip and read from them: small memories, and SRAM."""

    written: Number = 0
    read: Number = 0
    sram_written: Number = 0
    sram_read: Number = 0

    def __add__(self, other: MemoryBits) -> MemoryBits:
        return MemoryBits(
            self.written + other.written,
            self.read + other.read,
            self.sram_written + other.sram_written,
            self.sram_read + other.sram_read,
        )

    @classmethod
    def of(cls, written: Number, read: Number, is_sram: bool) -> MemoryBits:
        """Return the bits of one memory, which is SRAM or a small memory."""
        return cls(sram_written=written, sram_read=read) if is_sram else cls(written, read)


@dataclass(frozen=True, slots=True)
class EnergyCounts:
    """The events of a graph. `expected` are the parts whose events are estimated, and not counted in a run, and `notices` say
    which events are left out.

    `operators` are applications to single values, by the constant of the table that they take (`mul`, `add_16`). `fifos` are the bits of
    all tokens that went through FIFOs, `written` and `read` alike, `workspaces` the bits of entries and of lines of reuse
    buffers. `switching` are the gates of the rules of nodes, each as often as its node fired. `activations` are the rows that the
    DRAM opened, `dram_bits` the bits that it moved, and `refreshes` how often all banks of a rank, or of a channel without ranks,
    are refreshed in the run, as a mean. `leaking` are the gates of the circuit, and `leaking_bits` its bits of SRAM and those of
    the scratchpad, each times the nanoseconds of the run.
    """

    operators: Mapping[str, Number]
    fifos: MemoryBits
    switching: Number
    workspaces: MemoryBits
    activations: Number
    dram_bits: Number
    refreshes: Number
    leaking: Number
    leaking_bits: Number
    expected: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """The events of the nodes of a graph: the firings of each, the number of values to which each operator was applied, and the
    number of tokens that went through each FIFO."""

    firings: Mapping[str, Number]
    values: Mapping[str, Number]
    tokens: Mapping[n.Edge, Number]


@dataclass(frozen=True, slots=True)
class DramEvents:
    """Rows that the DRAM opened, and bits that it moved. `buffered` are bits that were put into reuse buffers or the scratchpad, or
    preloaded, and `hits` are bits that were read there instead of from the DRAM."""

    activations: Number
    bits: Number
    buffered: Number = 0
    hits: Number = 0


class TrafficRow(Protocol):
    """The bytes that were requested from one array of a tensor, or that an estimate expects."""

    @property
    def tensor(self) -> str: ...

    @property
    def direction(self) -> str: ...

    @property
    def bytes(self) -> Number: ...


def with_preloads(dram: DramEvents, graph: n.Graph, traffic: Iterable[TrafficRow]) -> DramEvents:
    """Return `dram` with the events of preloaded tensors added. A node that keeps such a tensor gets the whole tensor once, and
    reads it on the chip. A node that reads the tensor in order reads it once, from the memory."""
    kept = preloaded_readers(graph)
    if not kept:
        return dram
    loads = [node for node in graph.nodes if isinstance(node, n.Load)]
    size = {node.tensor: kept[node.name] for node in loads if node.name in kept}
    read = sum(row.bytes for row in traffic if row.tensor in size and row.direction == "read")
    in_order = sum(size[node.tensor] for node in loads if node.tensor in size and node.name not in kept)
    return replace(dram, buffered=dram.buffered + 8 * sum(kept.values()), hits=dram.hits + 8 * (read - in_order))


def energy_counts(
    graph: n.Graph,
    machine: Machine,
    events: NodeEvents,
    dram: DramEvents,
    area: int | None,
    cycles: Number,
    held: Mapping[str, HeldEntries],
    slots: Mapping[n.Edge, int] | None = None,
    expected: frozenset[str] = frozenset(),
) -> EnergyCounts:
    """Return the events that take energy in a graph that ran for `cycles`. `area` is the area of its circuit, or None if a FIFO
    has no bound; then leakage is left out. `held` and `slots` are as in `graph_resources`. Raises `EnergyError` for a machine
    with `rules: comal`."""
    require_energy(machine)
    areas = AreaCount(graph, machine)
    buffers = MemoryBits.of(dram.buffered, dram.hits, is_sram=True)
    notices = [] if isinstance(machine.memory, DramMemory) else [_no_rows(machine)]
    sram, time = sram_bits(areas, held, slots), cycles / machine.clock_ghz
    scratchpad = 0 if machine.scratchpad is None else 8 * machine.scratchpad.bytes  # which is there whether it is used or not
    if area is None:
        notices.append("FIFOs without a bound have no area, so what leaks is left out")
    return EnergyCounts(
        _operators(graph, events.values),
        _fifo_bits(areas, events),
        sum(events.firings[node.name] * areas.control(node) for node in graph.nodes),
        _workspace_bits(areas, held, events) + buffers,
        dram.activations,
        dram.bits,
        refreshes(machine, cycles),
        0 if area is None else (area - memory_area(sram / 8)) * time,
        0 if area is None else (sram + scratchpad) * time,
        expected,
        tuple(notices),
    )


def require_energy(machine: Machine) -> None:
    """Raise `EnergyError` for a machine without energies, which is one with `rules: comal`."""
    if machine.rules == "comal":
        raise EnergyError(
            f"machine `{machine.name}` has `rules: comal`, the times of a simulator that is no model of hardware",
            hint="take a machine with `rules: dataflow`, such as `rda`",
        )


USUAL_DRAM = "hbm2"
"""The DRAM whose energies a memory takes that opens no rows."""


def dram_name(machine: Machine) -> str:
    """Return the name of a machine's DRAM in the table of energies: its preset, or the base of its own table."""
    if not isinstance(machine.memory, DramMemory):
        return USUAL_DRAM
    own: Mapping[str, Any] = machine.memory.table or {}
    return str(own.get("base", machine.memory.model))


def refreshes_per_cycle(table: DramTable) -> Fraction:
    """Return how often a channel refreshes all banks of a rank, or its own banks if it has no ranks, in a cycle of the memory. A command
    that refreshes one bank counts as the share of this bank."""
    sizes = dict(table.levels)
    ranks = sizes.get("rank", 1)
    match table.refresh:
        case "none":
            return Fraction(0)
        case "all-bank":
            return Fraction(ranks, table.refresh_period)
        case "per-bank":
            commands = sizes.get("pseudo_channel", 1) if table.controller == "hbm34" else 1
            return Fraction(ranks * commands, table.banks * table.refresh_period)
        case _:
            assert_never(table.refresh)


def refreshes(machine: Machine, cycles: Number) -> Number:
    """Return how often a DRAM refreshes all banks of its ranks, or of its channels if it has no ranks, in `cycles`, as a mean. Other
    memories are not refreshed."""
    if not isinstance(machine.memory, DramMemory):
        return 0
    table, clock = machine.memory.dram, machine.memory.cycles_in(machine.clock_ghz)
    memory_cycles, rate = cycles * clock.numerator / clock.denominator, refreshes_per_cycle(table)
    return table.channels * memory_cycles * rate.numerator / rate.denominator


def _no_rows(machine: Machine) -> str:
    if machine.memory.model == "ideal":
        return "the memory answers at once: the DRAM moves the elements that are asked for, and opens no rows"
    return f"a memory of the model `{machine.memory.model}` opens no rows"


def _edges(graph: n.Graph) -> list[tuple[n.Edge, n.Port]]:
    return [(n.Edge(node.name, k), port) for node in graph.nodes for k, port in enumerate(node.inputs)]


def _operators(graph: n.Graph, values: Mapping[str, Number]) -> Mapping[str, Number]:
    """Return the number of applications of operators to single values, by the name of their constant in the table of energies."""
    types, totals = graph.types(), Counter[str]()
    for node in graph.nodes:
        if not node.operator:
            continue
        tiles = [types[port].tile for port in node.inputs if types[port].kind == "val"]
        bits = operand_bits(node, graph.element_bits)
        number = values[node.name] * work_count(node.operator, tiles)
        for unit in _unit_classes(node):
            totals[_constant(unit, bits)] += number  # type: ignore[assignment]
    return {name: number for name, number in sorted(totals.items()) if number}


def _unit_classes(node: n.Node) -> tuple[str, ...]:
    """Return the classes of the units that process each value of a node. A product of tiles multiplies and adds."""
    if node.grain == "fold":
        return (reducer(node.operator).unit,)
    row = TILE_OPERATORS.get(node.operator)
    if row is None:
        return (operator(node.operator).unit,)
    return ("mul", "add") if row.flops_per_work == 2 else (row.unit,)


def _constant(unit: str, bits: int) -> str:
    """Return the name of the constant of a class of units for elements of `bits` bits.

    >>> _constant("mul", 8), _constant("add", 16), _constant("add", 64), _constant("div", 8)
    ('mul_8', 'add_16', 'add', 'div')
    """
    narrow = next((width for width in (8, 16) if bits <= width), None)
    return unit if narrow is None or unit not in ("add", "mul") else f"{unit}_{narrow}"


def _fifo_bits(areas: AreaCount, events: NodeEvents) -> MemoryBits:
    """Return the bits of all tokens, each of which was written to a FIFO once and read once."""
    total = MemoryBits()
    for edge, port in _edges(areas.graph):
        bits = events.tokens[edge] * areas.token_bits(port)
        total += MemoryBits.of(bits, bits, has_sram_fifo(areas, edge))
    return total


def _workspace_bits(areas: AreaCount, held: Mapping[str, HeldEntries], events: NodeEvents) -> MemoryBits:
    """Return the bits that workspaces write and read. Every firing that takes a token of the values writes an entry (which an
    accumulator reads first), and every firing that emits a token reads one. So a stop counts as an entry."""
    total, graph = MemoryBits(), areas.graph
    tokens = {port: events.tokens[edge] for edge, port in _edges(graph)}
    for node in graph.nodes:
        if not isinstance(node, n.Workspace):
            continue
        bits, given = areas.entry_bits(node), tokens.get(node.ports[-1], 0)
        taken = events.firings[node.name] - given
        read = given + taken * READS_AND_WRITES[type(node)]
        total += MemoryBits.of(bits * taken, bits * read, holds_sram(areas, node, held))
    return total
