"""The pipeline, top to bottom: a model, its data, a schedule and a machine become a compiled program, which can be run.

source      `load`                the model as an Einsum program, with its tensors
plan        `planned`             the program with some operands divided into parts
layouts     `with_layouts`        a training step with its tensors in other formats
program     `lower_cut`           the program with formats and blocks, cut into the regions of the schedule
regions     `lower_cut`           one region after the other, fused, with its loops in their best order
table       `build_table`         the steps of each region, inside of `lower_regions`
graph       `emit`                the SAMML graph of each table, inside of `lower_regions`
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fuseflow.cut.cut_cache import lower_cut
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.phases import carried_inputs
from fuseflow.frontend.model_spec import TrainingRequest
from fuseflow.frontend.sources import Source, load_model
from fuseflow.garbage_collection import collection_paused
from fuseflow.lower.machine_type_check import refuse_wide_tensors
from fuseflow.lower.partition import refuse_auto
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.plan_application import planned
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    import torch

    from fuseflow.array.settings import ArraySettings
    from fuseflow.frontend.model_spec import Model, ModelArguments
    from fuseflow.training.losses import LossFunction
    from fuseflow.training.optimizers.optimizer import Optimizer


def compile(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    observe: Callable[[Source | Program | CompiledRegion], None] = lambda stage: None,
    **arguments: Unpack[ModelArguments],
) -> Compiled:
    """Compile a model to one dataflow graph for each region of the schedule.

    `model` is a `torch.nn.Module`, a function of tensors or an exported program, with its `inputs` (a tuple of positional arguments, or a
    mapping of keyword arguments: tensors of PyTorch, arrays of NumPy, or matrices of scipy, each stored in its own layout) and further
    keyword arguments in `kwargs`; a model file (`.py`) or a function that builds a model (`file.py:function`, `package.module:function`),
    with `data`, `data_dir` and `options`, its keyword arguments; an exported program in a file (`.pt2`), with `inputs`, or `tensors` by
    name, or the inputs that it was exported with, whose sizes `dims` changes; a program of Einsums as a text of several lines, in a file
    (`.ein`, `.mlir`) or as a `Program`, with `inputs` in the order of their declarations or by name, or `tensors`, a YAML file. `formats`
    annotates tensors that PyTorch holds dense. `sparsity` makes a PyTorch model sparse: a `SparseSpec`, a rule
    (`"*.weight=magnitude:0.9:csr"`), the YAML file of one, or a directory that `fuseflow sparsify` wrote. `propagate` leaves out elements
    that no output needs, as far as this follows from the zeros of weights and buffers; a `PropagationSpec` says which other values are
    known. `seed` fixes random weights and data. A model file that was compiled before is read from a cache, unless something that it
    depends on changed since, or `fresh` asks to import it again. `observe` is called with every stage as soon as it exists.

    Raises a subclass of `FuseFlowError`, which says what to change, and `TypeError` for an argument that it does not have.

    >>> import numpy as np, scipy.sparse as sp, fuseflow as ff
    >>> A, X = sp.eye_array(4, format="csr"), np.ones((4, 3))
    >>> text = '''
    ... tensor A[4, 4] csr
    ... tensor X[4, 3]
    ... Y[i, j] = sum(k) A[i, k] * X[k, j]
    ... output Y
    ... '''
    >>> program = ff.compile(text, (A, X), schedule=ff.Schedule.fuse("full").par(i=2), machine="ideal")
    >>> program.run()
    <Result program: ... cycles, 1 regions, check passed>

    A function or a module of PyTorch is compiled in the same way: `ff.compile(lambda a, x: a @ x, (A, X))`.
    """
    schedule = schedule or Schedule()
    refuse_auto(schedule)
    hardware = load_machine(machine)
    source = load_model(model, inputs, arguments, compile)
    observe(source)
    return compile_source(source, schedule, hardware, observe)


def training_step(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    target: Any = None,
    *,
    loss: str | LossFunction | None = None,
    optimizer: str | Optimizer | torch.optim.Optimizer | None = None,
    gradients: bool = False,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    observe: Callable[[Source | Program | CompiledRegion], None] = lambda stage: None,
    **arguments: Unpack[ModelArguments],
) -> Compiled:
    """Compile a training step of a PyTorch model: forward, loss, backward and update as one program.

    `loss` is a loss by name, such as `cross_entropy:label_smoothing=0.1`, or a function of the output and the `target` that returns a
    scalar; `"model"` means that the model returns its loss. `optimizer` is an optimizer of PyTorch, whose constants, groups and states
    are read, or one by name, such as `adamw:lr=1e-3,weight_decay=0.1`. A model file may say all three, and its data give a target:
    labels, outside of the training split ignored. Otherwise the optimizer is `sgd:lr=0.1`, and a loss must be given. With `gradients`,
    the gradients of parameters are outputs of the program, too. All other arguments are as of `compile`.

    The model runs in the mode, training or evaluation, in which it is; that of a model file runs in training. `Compiled.run(steps=10)`
    takes ten steps. Raises a subclass of `FuseFlowError`, which says what to change.

    >>> import torch, fuseflow as ff
    >>> model, x, y = torch.nn.Linear(3, 1), torch.ones(4, 3), torch.zeros(4, 1)
    >>> step = ff.training_step(model, (x,), y, loss="mse", optimizer="sgd:lr=0.1,momentum=0.9")
    >>> run = step.run(steps=3)
    >>> len(run.losses), run.check.passed
    (3, True)
    """
    arguments["training"] = TrainingRequest(loss, optimizer, target, gradients)
    return compile(model, inputs, schedule=schedule, machine=machine, observe=observe, **arguments)


def compile_source(
    source: Source,
    schedule: Schedule,
    machine: Machine,
    observe: Callable[[Program | CompiledRegion], None] = lambda stage: None,
    array: ArraySettings | None = None,
) -> Compiled:
    """Compile a loaded model: its program is cut into regions, and each becomes a fused tree, a table and a graph. If the schedule leaves
    the cut to the compiler, regions are to fit the `array`."""
    start = time.perf_counter()
    source, schedule = planned(source, schedule, machine)
    if carried_inputs(source.program):
        from fuseflow.layouts.kept_layouts import with_layouts  # which programs without steps do without

        source = with_layouts(source, schedule, machine)
    schedule, partitioned, lowered = lower_cut(source, schedule, machine, array)
    refuse_wide_tensors(partitioned.original, source.tensors, machine)
    observe(partitioned.program)
    regions: list[CompiledRegion] = []
    with collection_paused():
        for region in lowered:
            observe(region)
            regions.append(region)
    if schedule.depth_policy == "auto":
        from fuseflow.run.needed_depths import with_needed_depths  # estimates, which takes long to load

        regions = with_needed_depths(regions, partitioned.program, source.tensors, machine)
    if schedule.tiles or schedule.memories:
        from fuseflow.lower.scratchpad import with_places  # which most programs do without
        from fuseflow.lower.tiles import with_tiles

        regions = with_places(with_tiles(regions, schedule), partitioned)
    return Compiled(
        source,
        partitioned.program,
        schedule,
        tuple(regions),
        machine,
        time.perf_counter() - start,
        partitioned.notices,
        partitioned,
    )
