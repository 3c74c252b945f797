"""The table of energies, and the notes that it needs: the technology of each part, and how far its numbers can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from rich.markup import escape
from rich.table import Table

from fuseflow.energy import PARTS, Part, ProgramEnergy, RegionEnergy
from fuseflow.report.tables import plain_table

ENERGY_FILE = "energy.json"
"""The file of energies in the directory of a run."""
ABOUT = "~"
"""The mark before a number that is expected and not counted."""
HEADINGS = ("operators\nnJ", "FIFOs\nnJ", "control\nnJ", "workspaces\nnJ", "DRAM\nnJ", "leakage\nnJ")
"""The headings of the parts, in the order of `energy.PARTS`."""
NAMES: Mapping[Part, str] = {part: heading.partition("\n")[0] for part, heading in zip(PARTS, HEADINGS, strict=True)}


def energy_table(energy: ProgramEnergy) -> Table:
    """Return a table with a row for each region, in nanojoules, and the sum of all."""
    table = plain_table("region", *HEADINGS, "energy\nnJ", numbers_from=1, footer=True)
    for region in energy.regions:
        label = region.name if region.times == 1 else f"{region.name} x{region.times}"
        table.add_row(escape(label), *_cells(region))
    for column, cell in zip(table.columns, ("total", *_cells(energy)), strict=True):
        column.footer = cell
    return table


def _cells(energy: RegionEnergy | ProgramEnergy) -> tuple[str, ...]:
    parts = (_number(energy.of_part(part), part in energy.expected) for part in PARTS)
    return (*parts, _number(energy.total, bool(energy.expected)))


def _number(picojoules: float, expected: bool) -> str:
    return f"{ABOUT if expected else ''}{picojoules / 1000:,.2f}"


def energy_lines(energy: ProgramEnergy) -> Iterator[str]:
    """Yield lines on the technology of each part, how the energies of events are known, and the parts that are left out."""
    by_technology: dict[str, list[str]] = {}
    for part, technology in energy.technologies.items():
        by_technology.setdefault(technology, []).append(NAMES[part])
    yield "; ".join(f"{', '.join(names)}: {technology}" for technology, names in by_technology.items())
    marks = Counter(constant.mark for constant in energy.energies.constants().values())
    guessed = [f"`{part}.{name}`" for (part, name), constant in energy.energies.constants().items() if constant.mark == "guessed"]
    names = {"guessed": f" ({', '.join(guessed)})"}
    known = (f"{count} {mark}{names.get(mark, '')}" for mark, count in sorted(marks.items()))
    yield f"energies of events: {', '.join(known)}; for comparing schedules, not for a data sheet"
    yield from energy.notices
