"""Design spaces: schedules, data and machines compared, point by point, in a store that outlives what runs it."""

from fuseflow.explore.file import SweepFile, read_sweep
from fuseflow.explore.point import Outcome, Point, Task
from fuseflow.explore.pool import Pool
from fuseflow.explore.space import Place, Space, space
from fuseflow.explore.store import Store
from fuseflow.explore.sweep import Sweep

__all__ = ["Outcome", "Place", "Point", "Pool", "Space", "Store", "Sweep", "SweepFile", "Task", "read_sweep", "space"]
