"""Tables of what regions take: the resources that they occupy on an accelerator, and energy, with the notes that a reader needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rich.markup import escape
from rich.table import Table

from fuseflow.energy import PARTS, Part, ProgramEnergy, RegionEnergy
from fuseflow.report.quantities import ENERGY_UNITS, energy_places, energy_unit
from fuseflow.report.tables import add_footer, plain_table
from fuseflow.resources import Resources

HEADINGS = ("mul", "add", "special", "ports", "stream\nunits", "FIFO\nbytes", "workspace\nbytes", "buffer\nbytes", "area")
"""The headings of the components, in the order of `resources.COMPONENTS`."""


def resource_table(regions: Iterable[tuple[str, Resources]]) -> Table:
    """Return a table with a row for each region, and the most of each component. Regions run one after the other, so a machine that has
    the most of each has room for all of them."""
    rows = tuple(regions)
    table = plain_table("region", *HEADINGS, numbers_from=1, footer=True)
    for name, resources in rows:
        table.add_row(escape(name), *_resource_cells(resources))
    add_footer(table, "most", *_resource_cells(Resources.most_of(r for _, r in rows)))
    return table


def _resource_cells(resources: Resources) -> tuple[str, ...]:
    """Return the resources by component as text: with `≥` if a run may take more, `≤` if it may take less, and `unbounded`."""
    counts = (resources.mul, resources.add, resources.special, resources.port, resources.stream)
    least, most = "≥ " if resources.fifo_grows else "", "≤ " if resources.workspace_bound else ""
    fifo, area = ("unbounded" if n is None else f"{least}{n:,}" for n in (resources.fifo, resources.area))
    return (*(f"{count:,}" for count in counts), fifo, f"{most}{resources.workspace:,}", f"{resources.buffer:,}", area)


ENERGY_FILE = "energy.json"
"""The file of energies in the directory of a run."""
ABOUT = "~"
"""The mark before a number that is expected and not counted."""
ENERGY_HEADINGS = ("operators\nJ", "FIFOs\nJ", "control\nJ", "workspaces\nJ", "DRAM\nJ", "leakage\nJ", "energy\nJ")
"""The headings of the parts, in the order of `energy.PARTS`, and of all together; a table has the unit of its sum in place of J."""
NAMES: Mapping[Part, str] = {part: heading.partition("\n")[0] for part, heading in zip(PARTS, ENERGY_HEADINGS, strict=False)}


def energy_table(energy: ProgramEnergy) -> Table:
    """Return a table with a row for each region, and the sum of all. All numbers have the unit and the decimal places of the sum."""
    unit, places = energy_unit(energy.total), energy_places(energy.total)
    table = plain_table("region", *(f"{head[:-1]}{unit}" for head in ENERGY_HEADINGS), numbers_from=1, footer=True)
    for region in energy.regions:
        label = region.name if region.times == 1 else f"{region.name} x{region.times}"
        table.add_row(escape(label), *_energy_cells(region, unit, places))
    add_footer(table, "total", *_energy_cells(energy, unit, places))
    return table


def _energy_cells(energy: RegionEnergy | ProgramEnergy, unit: str, places: int) -> Iterator[str]:
    amounts = [(energy.of_part(part), part in energy.expected) for part in PARTS]
    for picojoules, expected in (*amounts, (energy.total, bool(energy.expected))):
        yield f"{ABOUT if expected else ''}{picojoules / ENERGY_UNITS[unit]:,.{places}f}"


def energy_lines(energy: ProgramEnergy) -> Iterator[str]:
    """Yield lines on the technology of each part, how the energies of events are known, and the parts that are left out."""
    by_technology: dict[str, list[str]] = {}
    for part, technology in energy.technologies.items():
        by_technology.setdefault(technology, []).append(NAMES[part])
    yield "; ".join(f"{', '.join(names)}: {technology}" for technology, names in by_technology.items())
    marks = Counter(constant.mark for constant in energy.constants.values())
    guessed = [f"`{part}.{name}`" for (part, name), constant in energy.constants.items() if constant.mark == "guessed"]
    names = {"guessed": f" ({', '.join(guessed)})"}
    known = (f"{count} {mark}{names.get(mark, '')}" for mark, count in sorted(marks.items()))
    yield f"energies of events: {', '.join(known)}; for comparing schedules, not for a data sheet"
    yield from energy.notices
