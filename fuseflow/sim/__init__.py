"""Simulation: graphs on machines, token by token."""

from fuseflow.sim.engines import ENGINES, Engine
from fuseflow.sim.machine import Machine
from fuseflow.sim.machine_file import load_machine, machine_names, with_settings
from fuseflow.sim.run import Simulation, simulate
from fuseflow.sim.statistics import EdgeStatistics, NodeStatistics, Recording, Traffic

__all__ = [
    "ENGINES",
    "EdgeStatistics",
    "Engine",
    "Machine",
    "NodeStatistics",
    "Recording",
    "Simulation",
    "Traffic",
    "load_machine",
    "machine_names",
    "simulate",
    "with_settings",
]
