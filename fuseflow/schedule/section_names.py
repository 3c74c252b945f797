"""The regions, modules and Einsums that a schedule names where it does not say what is fused."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.schedule.regions import module_paths
from fuseflow.schedule.schedule import Schedule
from fuseflow.schedule.section import split_fifo, split_lanes


def names_in_sections(schedule: Schedule) -> tuple[str, ...]:
    """Return the names of regions in a schedule, and of what has orders, lanes, depths or splits (an index alone has none)."""
    names = [
        *(name for name, _ in schedule.regions),
        *(name for name, _ in schedule.orders),
        *(split_lanes(index)[0] for index, _ in schedule.parallel),
        *(split_fifo(name)[0] for name, _ in schedule.depths),
        *(index.rpartition(".")[0] for index, _ in schedule.splits),
    ]
    return tuple(dict.fromkeys(name for name in names if name))


def section_regions(program: Program, schedule: Schedule) -> tuple[str, ...]:
    """Return the names in the sections of a schedule, without those that the program does not have.

    >>> from fuseflow.einsum.parse import parse
    >>> program = parse("tensor A[4] dense\\nB[i] = A[i] * 2\\nC[i] = B[i] + 1\\noutput C")
    >>> section_regions(program, Schedule.par(**{"B.i": 2}).depth("nothing", 4))
    ('B',)
    """
    return tuple(name for name in names_in_sections(schedule) if is_part(program, schedule, name))


def is_part(program: Program, schedule: Schedule, name: str) -> bool:
    """Return whether a name is that of a region of the schedule, or of a module or an Einsum of the program."""
    return name in dict(schedule.regions) or name in program.defined or name in module_paths(program)
