"""The statistics of the memory in a run, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fuseflow.memory.layout import array_label
from fuseflow.memory.statistics import MemoryPort, MemoryStatistics, PortStatistics
from fuseflow.sim import Simulation

CHANNEL_TOTALS = ("hits", "misses", "conflicts", "forwarded", "absorbed", "turnarounds", "refresh_cycles")
"""The statistics of channels that are added up over all channels."""


def roofline_values(run: Simulation) -> dict[str, Any]:
    """Return the least cycles for computing and for moving bytes. `memory` is None if the memory answers at once."""
    return {"compute": run.busiest, "memory": None if run.memory is None else run.memory.bound, "bound": run.bound}


def memory_values(memory: MemoryStatistics, cycles: int) -> dict[str, Any]:
    """Return the statistics of the memory in a run that took `cycles`, as plain values."""
    return {
        "model": memory.model,
        "peak_bytes_per_cycle": float(memory.peak),
        "bytes_per_cycle": round(memory.moved_bytes() / max(cycles, 1), 4),
        "read_bytes": memory.moved_bytes("read"),
        "written_bytes": memory.moved_bytes("write"),
        "read_latency": round(memory.read_latency, 4),
        "read_latency_p99": memory.read_latency_p99,
        **{name: memory.total(name) for name in CHANNEL_TOTALS},
        "places": [{"array": array_label(array), **asdict(place)} for array, place in memory.places.items()],
        "ports": [_port_values(port, statistics) for port, statistics in memory.ports],
        "channels": [asdict(channel) for channel in memory.channels],
    }


def _port_values(port: MemoryPort, statistics: PortStatistics) -> dict[str, Any]:
    """Return the statistics of a port. The lines and the hits of a reuse buffer are left out if it has none."""
    values = {**asdict(port), **asdict(statistics)}
    return {name: value for name, value in values.items() if port.buffer or name not in ("buffer", "hits")}
