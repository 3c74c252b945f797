"""The regions, modules and Einsums that a schedule names where it does not say what is fused."""

from __future__ import annotations

from fuseflow.schedule.schedule import Schedule


def names_in_sections(schedule: Schedule) -> tuple[str, ...]:
    """Return the names of regions in a schedule, and of what has orders, lanes, depths or splits (an index alone has none)."""
    names = [
        *(name for name, _ in schedule.regions),
        *(name for name, _ in schedule.orders),
        *(index.partition("/")[0] if "/" in index else index.rpartition(".")[0] for index, _ in schedule.parallel),
        *(name.partition("/")[0] for name, _ in schedule.depths),
        *(index.rpartition(".")[0] for index, _ in schedule.splits),
    ]
    return tuple(dict.fromkeys(name for name in names if name))
