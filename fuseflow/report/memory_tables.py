"""Tables of the memory traffic of a run by region and by tensor, and of the addresses of arrays."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from fuseflow.memory.layout import array_label
from fuseflow.memory.statistics import MemoryStatistics
from fuseflow.report.tables import plain_table
from fuseflow.run.result import RegionResult, Result


def memory_tables(result: Result) -> tuple[Table, ...]:
    """Return the table by tensor and, where memory takes time, the one by region and the map of addresses, too."""
    timed = [(region, memory) for region in result.regions if (memory := region.simulation.memory) is not None]
    tensors = _tensors_table(result)
    placed = [(region, memory) for region, memory in timed if memory.on_chip]
    scratchpad = (_scratchpad_table(placed),) if placed else ()
    return (_regions_table(timed), *scratchpad, tensors, _places_table(timed)) if timed else (tensors,)


def _regions_table(regions: list[tuple[RegionResult, MemoryStatistics]]) -> Table:
    """Return a table of the bytes moved in each region, their rate, and the work of the channels. Row hits and conflicts are shares of all
    transactions, and refresh is a share of all time of the channels."""
    table = plain_table(
        "region", "moved\nread", "moved\nwritten", "bytes a\ncycle", "of peak\n%", "row hits\n%", "conflicts\n%", "turn-\narounds",
        "refresh\n%", "latency\nmean", "latency\np99", numbers_from=1,
    )  # fmt: skip
    for region, memory in regions:
        rate = memory.moved_bytes() / max(region.cycles, 1)
        table.add_row(
            escape(region.name),
            f"{memory.moved_bytes('read'):,}",
            f"{memory.moved_bytes('write'):,}",
            f"{rate:.1f}",
            f"{100 * rate / memory.peak:.1f}",
            *_channels(memory, region.cycles),
            f"{memory.read_latency:.1f}",
            f"{memory.read_latency_p99:,}",
        )
    return table


def _scratchpad_table(regions: list[tuple[RegionResult, MemoryStatistics]]) -> Table:
    """Return a table of what the scratchpad does in each region: the bytes that are loaded from the memory and stored there, the words that
    nodes read and write, and their share of the most words that it can give in all cycles."""
    table = plain_table(
        "region", "bytes\nloaded", "bytes\nstored", "words\nread", "words\nwritten", "of peak\n%", "latency\nmean", numbers_from=1
    )
    for region, memory in regions:
        ports = [of for port, of in memory.ports if port.on_chip]
        latency = sum(of.latency * of.requests for of in ports) / max(memory.words(), 1)
        table.add_row(
            escape(region.name),
            f"{memory.transferred_bytes('read'):,}",
            f"{memory.transferred_bytes('write'):,}",
            f"{memory.words('read'):,}",
            f"{memory.words('write'):,}",
            f"{100 * memory.words() / max(region.cycles * memory.words_a_cycle, 1):.1f}",
            f"{latency:.1f}",
        )
    return table


def _channels(memory: MemoryStatistics, cycles: int) -> tuple[str, ...]:
    """Return the cells about the channels: row hits, conflicts, turnarounds and refresh. Without channels they are dashes."""
    if not memory.channels:
        return ("-",) * 4
    served = max(memory.total("hits") + memory.total("misses") + memory.total("conflicts"), 1)
    refresh = memory.total("refresh_cycles") / max(cycles * memory.clock * len(memory.channels), 1)
    return (
        f"{100 * memory.total('hits') / served:.1f}",
        f"{100 * memory.total('conflicts') / served:.1f}",
        f"{memory.total('turnarounds'):,}",
        f"{100 * refresh:.1f}",
    )


def _tensors_table(result: Result) -> Table:
    """Return a table of the bytes of each array that nodes requested and, where memory takes time, of the lines that were read
    for them. If there are reuse buffers, it has the number of lines that were found in them."""
    memories = [region.simulation.memory for region in result.regions]
    is_buffered = any(memory is not None and memory.is_buffered for memory in memories)
    columns = ("lines", *(["hits"] if is_buffered else []), "moved", "latency")
    table = plain_table("region", "tensor", "array", "", "bytes", *columns, numbers_from=4)
    for region in result.regions:
        name = escape(region.name)
        for row in _rows(region, is_buffered):
            table.add_row(name, *row)
            name = ""
    return table


def _rows(region: RegionResult, is_buffered: bool) -> Iterator[tuple[str, ...]]:
    memory = region.simulation.memory
    for t in region.simulation.traffic:
        first = (escape(t.tensor), t.kind, t.direction, f"{t.bytes:,}")
        if memory is None:
            yield (*first, *["-"] * (4 if is_buffered else 3))
            continue
        own = t.tensor, t.kind, t.direction
        rows = [(port, of) for port, of in memory.ports if (port.tensor, port.kind, port.direction) == own]
        ports = [of for _, of in rows]
        lines = sum(of.requests for of in ports)
        latency = sum(of.latency * of.fetches for of in ports) / max(sum(of.fetches for of in ports), 1)
        hits = [f"{sum(of.hits for of in ports):,}"] if is_buffered else []
        moved = sum(of.moved_bytes for port, of in rows if not port.on_chip)
        yield (*first, f"{lines:,}", *hits, f"{moved:,}", f"{latency:.1f}")


def _places_table(regions: list[tuple[RegionResult, MemoryStatistics]]) -> Table:
    """Return a table of the address of every array, and of the bytes that it takes there. Results share what inputs leave of the memory."""
    table = plain_table("region", "array", "address", "bytes", numbers_from=3)
    for region, memory in regions:
        name = escape(region.name)
        written = {port.tensor for port, _ in memory.ports if port.direction == "write"}
        results = sum(tensor in written for tensor, _, _ in memory.places)
        room = "as it grows" if results == 1 else f"as it grows, up to 1/{results} of the rest"
        for array, place in memory.places.items():
            taken = room if array[0] in written else f"{place.length:,}"
            table.add_row(name, escape(array_label(array)), f"{place.base:#012x}", taken)
            name = ""
        for array, place in memory.on_chip.items():
            table.add_row(name, escape(array_label(array)), f"scratchpad {place.base:#08x}", f"{place.length:,}")
            name = ""
    return table
