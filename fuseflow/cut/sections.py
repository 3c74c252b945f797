"""The regions that a schedule names where it does not say what is fused."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.schedule import Schedule
from fuseflow.schedule.regions import module_paths
from fuseflow.schedule.section_names import names_in_sections


def section_regions(program: Program, schedule: Schedule) -> tuple[str, ...]:
    """Return the regions that a schedule names where it does not say what is fused: its `regions`, and the modules and Einsums
    for which it states loop orders, lanes, depths or splits. A name that the program does not have is not among them.

    >>> from fuseflow.einsum.parse import parse
    >>> program = parse("tensor A[4] dense\\nB[i] = A[i] * 2\\nC[i] = B[i] + 1\\noutput C")
    >>> section_regions(program, Schedule.par(**{"B.i": 2}).depth("nothing", 4))
    ('B',)
    """
    return tuple(name for name in names_in_sections(schedule) if is_part(program, schedule, name))


def is_part(program: Program, schedule: Schedule, name: str) -> bool:
    """Return whether a name is that of a region of the schedule, or of a module or an Einsum of the program."""
    return name in dict(schedule.regions) or name in program.defined or name in module_paths(program)
