"""fuseflow compiles sparse PyTorch models to fused sparse dataflow graphs and simulates them cycle by cycle.

>>> import fuseflow as ff
>>> print(ff.Schedule.fuse("layer1"), end="")
fuse: [layer1]
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fuseflow import attributes
    from fuseflow.autoscheduler.autoschedule import autoschedule
    from fuseflow.compiler import compile
    from fuseflow.einsum.nodes import Program
    from fuseflow.errors import FuseFlowError
    from fuseflow.frontend.named_region import region
    from fuseflow.planning import quantize
    from fuseflow.run.compiled import Compiled
    from fuseflow.run.notebook_progress import notebook_progress
    from fuseflow.run.result import Result
    from fuseflow.run.sampled_result import SampledResult
    from fuseflow.sampling.sample import Sample
    from fuseflow.schedule import Schedule
    from fuseflow.sim import Machine, load_machine
    from fuseflow.torch_backend import Backend, BackendResult, backend

__all__ = [
    "Backend",
    "BackendResult",
    "Compiled",
    "FuseFlowError",
    "Machine",
    "Program",
    "Result",
    "Sample",
    "SampledResult",
    "Schedule",
    "attributes",
    "autoschedule",
    "backend",
    "compile",
    "load_machine",
    "notebook_progress",
    "quantize",
    "region",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
