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

_MODULES = {
    "Backend": "torch_backend",
    "BackendResult": "torch_backend",
    "Compiled": "run.compiled",
    "FuseFlowError": "errors",
    "Machine": "sim",
    "Program": "einsum.nodes",
    "Result": "run.result",
    "Sample": "sampling.sample",
    "SampledResult": "run.sampled_result",
    "Schedule": "schedule",
    "attributes": "",
    "autoschedule": "autoscheduler.autoschedule",
    "backend": "torch_backend",
    "compile": "compiler",
    "load_machine": "sim",
    "notebook_progress": "run.notebook_progress",
    "quantize": "planning",
    "region": "frontend.named_region",
}
"""The module of each name of the package, and "" for one that is a module itself. It is imported when the name is first used, so that a
command loads only what it needs."""


__getattr__ = deferred_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
