"""fuseflow compiles sparse PyTorch models to fused sparse dataflow graphs and simulates them cycle by cycle.

>>> import fuseflow as ff
>>> print(ff.Schedule.fuse("layer1"), end="")
fuse: [layer1]
"""

from fuseflow.autoscheduler.autoscheduler import autoschedule
from fuseflow.compiler import compile
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.run.compiled import Compiled
from fuseflow.run.result import Result
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

__all__ = ["Compiled", "FuseFlowError", "Machine", "Program", "Result", "Schedule", "autoschedule", "compile", "load_machine"]
