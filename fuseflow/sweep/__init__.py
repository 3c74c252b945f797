"""Sweeps of a design space: schedules, data and machines are compared point by point, and the results are kept in a store."""

from fuseflow.sweep.design_space import DesignSpace, LabeledPoint, SweepFile, build_space, read_sweep
from fuseflow.sweep.point import Point, Task, TaskOutcome
from fuseflow.sweep.pool import Pool
from fuseflow.sweep.store import Store
from fuseflow.sweep.sweep import Sweep

__all__ = [
    "DesignSpace",
    "LabeledPoint",
    "Point",
    "Pool",
    "Store",
    "Sweep",
    "SweepFile",
    "Task",
    "TaskOutcome",
    "build_space",
    "read_sweep",
]
