"""Memory under the simulators: ports, and three models behind them. See docs/memory.md."""

from fuseflow.sim.memory.mapping import MAPPINGS, Mapping, mapping_named
from fuseflow.sim.memory.memory import Memory
from fuseflow.sim.memory.models import ComalFixed, Hbm2, Ideal, Model
from fuseflow.sim.memory.statistics import ChannelStatistics, PortStatistics
from fuseflow.sim.memory.timing import HBM2_2000, Device

__all__ = [
    "HBM2_2000",
    "MAPPINGS",
    "ChannelStatistics",
    "ComalFixed",
    "Device",
    "Hbm2",
    "Ideal",
    "Mapping",
    "Memory",
    "Model",
    "PortStatistics",
    "mapping_named",
]
