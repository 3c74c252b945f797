"""Simulation: this package executes graphs on machines, token by token, and counts the cycles."""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.machine.files import load_machine as load_machine
    from fuseflow.machine.files import machine_names as machine_names
    from fuseflow.machine.files import with_settings as with_settings
    from fuseflow.machine.machine import Machine as Machine
    from fuseflow.sim.engine_names import ENGINES as ENGINES
    from fuseflow.sim.engine_names import Engine as Engine
    from fuseflow.sim.outcome.statistics import EdgeStatistics as EdgeStatistics
    from fuseflow.sim.outcome.statistics import NodeStatistics as NodeStatistics
    from fuseflow.sim.outcome.statistics import Recording as Recording
    from fuseflow.sim.outcome.statistics import Traffic as Traffic
    from fuseflow.sim.run import Simulation as Simulation
    from fuseflow.sim.run import simulate as simulate
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
