"""Simulation: this package executes graphs on machines, token by token, and counts the cycles."""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.sim.engine_names import ENGINES, Engine
    from fuseflow.sim.machine.files import load_machine, machine_names, with_settings
    from fuseflow.sim.machine.machine import Machine
    from fuseflow.sim.outcome.statistics import EdgeStatistics, NodeStatistics, Recording, Traffic
    from fuseflow.sim.run import Simulation, simulate

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

if not TYPE_CHECKING:
    __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
