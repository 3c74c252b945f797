"""What memory did in a run, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fuseflow.sim import Simulation
from fuseflow.sim.memory.layout import array_label
from fuseflow.sim.memory.statistics import MemoryStatistics

CHANNEL_TOTALS = ("hits", "misses", "conflicts", "forwarded", "absorbed", "turnarounds", "refresh_cycles")
"""Numbers of the channels whose sum says something."""


def roofline_values(run: Simulation) -> dict[str, Any]:
    """The cycles that computing and moving bytes take at least. `memory` is None where memory answers at once."""
    return {"compute": run.busiest, "memory": None if run.memory is None else run.memory.bound, "bound": run.bound}


def memory_values(memory: MemoryStatistics, cycles: int) -> dict[str, Any]:
    """What memory did in a run that took `cycles`, as plain values."""
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
        "ports": [{**asdict(port), **asdict(of)} for port, of in memory.ports],
        "channels": [asdict(channel) for channel in memory.channels],
    }
