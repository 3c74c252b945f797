"""The energy of a run: counts of events, times the energy of each event.

`energy.yaml` has the energies of events with their sources, `counts` counts the events of a graph, and `energy` multiplies both.
"""

from fuseflow.energy.counts import EnergyCounts, dram_name, require_energy
from fuseflow.energy.energy import PARTS, Part, ProgramEnergy, RegionEnergy
from fuseflow.energy.event_energies import EventEnergies, load_event_energies

__all__ = [
    "PARTS",
    "EnergyCounts",
    "EventEnergies",
    "Part",
    "ProgramEnergy",
    "RegionEnergy",
    "dram_name",
    "load_event_energies",
    "require_energy",
]
