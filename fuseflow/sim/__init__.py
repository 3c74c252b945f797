"""Simulation: this package executes graphs on machines, token by token, and counts the cycles."""

from fuseflow.sim.machine.files import load_machine, machine_names, with_settings
from fuseflow.sim.machine.machine import Machine
from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Recording, Traffic
from fuseflow.sim.run import Simulation, simulate
from fuseflow.sim.simulators import ENGINES, Engine

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
