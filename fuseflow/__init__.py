"""fuseflow compiles sparse PyTorch models to fused sparse dataflow graphs and simulates them cycle by cycle.

>>> import scipy.sparse as sp, numpy as np, fuseflow as ff
>>> program = ff.compile(lambda a, x: (a @ x).relu(), (sp.eye_array(4, format="csr"), np.ones((4, 3))), schedule=ff.Schedule.fuse("full"))
>>> program.run()
<Result <lambda>: ... cycles, 1 regions, check passed>
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fuseflow import attributes as attributes
    from fuseflow import sparsity as sparsity
    from fuseflow.autoscheduler.autoschedule import autoschedule as autoschedule
    from fuseflow.compiler import compile as compile
    from fuseflow.compiler import training_step as training_step
    from fuseflow.einsum.nodes import Program as Program
    from fuseflow.errors import FuseFlowError as FuseFlowError
    from fuseflow.frontend.trace.named_region import region as region
    from fuseflow.interface.estimates import estimate as estimate
    from fuseflow.interface.explanations import Explanation as Explanation
    from fuseflow.interface.explanations import explain as explain
    from fuseflow.interface.reports import Page as Page
    from fuseflow.interface.reports import report as report
    from fuseflow.interface.sweeps import SweepResult as SweepResult
    from fuseflow.interface.sweeps import sweep as sweep
    from fuseflow.machine.files import load_machine as load_machine
    from fuseflow.machine.machine import Machine as Machine
    from fuseflow.run.compiled import Compiled as Compiled
    from fuseflow.run.notebook_progress import notebook_progress as notebook_progress
    from fuseflow.run.quantize import quantize as quantize
    from fuseflow.run.result import Result as Result
    from fuseflow.run.sampled_result import SampledResult as SampledResult
    from fuseflow.run.training.training_run import TrainingRun as TrainingRun
    from fuseflow.sampling.sample_request import Sample as Sample
    from fuseflow.schedule import Schedule as Schedule
    from fuseflow.sweep.design_space import DesignSpace as DesignSpace
    from fuseflow.torch_backend import Backend as Backend
    from fuseflow.torch_backend import BackendResult as BackendResult
    from fuseflow.torch_backend import backend as backend
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
