"""fuseflow compiles sparse PyTorch models to fused sparse dataflow graphs and simulates them cycle by cycle.

>>> import fuseflow as ff
>>> print(ff.Schedule.fuse("layer1"), end="")
fuse: [layer1]
"""

from fuseflow.autoscheduler.autoscheduler import autoschedule
from fuseflow.compiler import Compiled, Result, compile
from fuseflow.einsum.nodes import Program
from fuseflow.errors import FuseFlowError
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, load_machine

__all__ = ["Compiled", "FuseFlowError", "Machine", "Program", "Result", "Schedule", "autoschedule", "compile", "load_machine"]
