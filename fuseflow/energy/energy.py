"""The energy of a region, by part of the hardware, and of a program, in picojoules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from fuseflow.energy.counts import EnergyCounts, MemoryBits, Number
from fuseflow.energy.event_energies import EventEnergies, EventEnergy, PartEnergies

Part: TypeAlias = Literal["operators", "fifos", "control", "workspaces", "dram", "leakage"]
"""The name of a part of the hardware that takes energy."""
PARTS: tuple[Part, ...] = get_args(Part)
SCHEMA = 1
"""The schema of `energy.json`."""
NANOWATT_NANOSECOND = 1e-6
"""A nanowatt for a nanosecond, in picojoules."""


@dataclass(frozen=True, slots=True)
class EnergyItem:
    """The `count` of events of one kind, and their energy in picojoules. `constant` is the name of the kind in the table."""

    part: Part
    constant: str
    count: Number
    energy: float


@dataclass(frozen=True, slots=True, eq=False)
class RegionEnergy:
    """The energy of one region, item by item. `times` is the number of regions of the program with equal energy."""

    name: str
    times: int
    cycles: Number
    items: tuple[EnergyItem, ...]
    expected: frozenset[str]

    @property
    def total(self) -> float:
        return sum(item.energy for item in self.items)

    def of_part(self, part: Part) -> float:
        """Return the energy of a part of the hardware, in picojoules."""
        return sum(item.energy for item in self.items if item.part == part)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramEnergy:
    """The energy of a program, whose regions run one after the other. Each region is a separate circuit, which leaks while it
    runs. `energies` are those of its machine, by the part of the hardware."""

    regions: tuple[RegionEnergy, ...]
    energies: Mapping[str, PartEnergies]
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, regions: Iterable[tuple[str, int, Number, EnergyCounts]], energies: EventEnergies, dram: str) -> ProgramEnergy:
        """Return the energy of regions on a machine with the memory `dram`. Each region has its name, how often it counts, its cycles and
        its events. Raises `EnergyError` if there are no energies for the memory."""
        rows, parts = tuple(regions), energies.parts(dram)
        notices = dict.fromkeys(notice for _, _, _, counts in rows for notice in counts.notices)
        of_regions = (
            RegionEnergy(name, times, cycles, tuple(_items(counts, parts)), counts.expected)
            for name, times, cycles, counts in rows
        )
        return cls(tuple(of_regions), parts, tuple(notices))

    @property
    def total(self) -> float:
        """The energy of all regions, in picojoules."""
        return sum(region.times * region.total for region in self.regions)

    def of_part(self, part: Part) -> float:
        """Return the energy of a part of the hardware in all regions, in picojoules."""
        return sum(region.times * region.of_part(part) for region in self.regions)

    @property
    def expected(self) -> frozenset[str]:
        """The parts whose events were estimated, and not counted, in at least one region."""
        return frozenset().union(*(region.expected for region in self.regions))

    @property
    def technologies(self) -> Mapping[Part, str]:
        """The technology for which the energies of each part were found."""
        return {part: self.energies[part].technology for part in PARTS}

    @property
    def constants(self) -> Mapping[tuple[str, str], EventEnergy]:
        """The energy of every event, by the part of the hardware and the name of the event."""
        return {(part, name): constant for part, of in self.energies.items() for name, constant in of.constants().items()}

    def to_json(self) -> dict[str, Any]:
        """Return the energies as a JSON object, in picojoules."""
        return {
            "schema": SCHEMA,
            "unit": "pJ",
            "total": round(self.total, 3),
            "parts": {
                part: {
                    "energy": round(self.of_part(part), 3),
                    "technology": self.technologies[part],
                    "exact": part not in self.expected,
                }
                for part in PARTS
            },
            "regions": [_region_json(region) for region in self.regions],
            "constants": {f"{part}.{name}": constant.model_dump() for (part, name), constant in self.constants.items()},
            "notices": list(self.notices),
        }


def _region_json(region: RegionEnergy) -> dict[str, Any]:
    return {
        "name": region.name,
        "times": region.times,
        "cycles": round(region.cycles),
        "total": round(region.total, 3),
        "parts": {part: round(region.of_part(part), 3) for part in PARTS},
        "events": [
            {"part": item.part, "constant": item.constant, "count": round(item.count), "energy": round(item.energy, 3)}
            for item in region.items
        ],
    }


def _items(counts: EnergyCounts, energies: Mapping[str, PartEnergies]) -> Iterable[EnergyItem]:
    """Yield the items of a region. Kinds of events with a count of 0 have an item, too, except for operators."""
    values = {part: {name: constant.value for name, constant in of.constants().items()} for part, of in energies.items()}
    for name, number in counts.operators.items():
        yield EnergyItem("operators", name, number, number * values["operators"][name])
    events: tuple[_Event, ...] = (
        *_memory_events("fifos", counts.fifos),
        ("control", "gate", counts.switching, values["control"]["activity"]),
        *_memory_events("workspaces", counts.workspaces),
        ("dram", "activation", counts.activations, 1.0),
        ("dram", "move", counts.dram_bits, 1.0),
        ("dram", "io", counts.dram_bits, 1.0),
        ("dram", "ecc", counts.dram_bits, 1.0),
        ("dram", "refresh", counts.refreshes, 1.0),
        ("leakage", "gate", counts.leaking, NANOWATT_NANOSECOND),
        ("leakage", "sram_bit", counts.leaking_bits, NANOWATT_NANOSECOND),
    )
    for part, name, number, share in events:
        yield EnergyItem(part, name, number, number * share * values[part][name])


_Event: TypeAlias = tuple[Part, str, Number, float]
"""Events of one kind: the part, the constant, the number of events, and the share of the constant that one event takes."""


def _memory_events(part: Part, bits: MemoryBits) -> tuple[_Event, ...]:
    return (
        (part, "write", bits.written, 1.0),
        (part, "read", bits.read, 1.0),
        (part, "sram_write", bits.sram_written, 1.0),
        (part, "sram_read", bits.sram_read, 1.0),
    )
