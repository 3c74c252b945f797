"""`fuseflow.estimate`: what a model is expected to take, without running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fuseflow.array.settings import ArraySettings, load_array
from fuseflow.compiler import compile_source
from fuseflow.errors import refuse_unknown
from fuseflow.estimate import Assumptions
from fuseflow.estimate.counted.memo import MOST_PIECES, CountMemo
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.frontend.sources import load_model, refuse_unknown_arguments
from fuseflow.lower.partition import refuse_auto
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.run.artifact_reader import load_saved
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import Model, ModelArguments


def estimator_of(stats: Sequence[str] = (), statistics_only: bool = False, array: ArraySettings | None = None) -> Estimator:
    """Return the estimator that `--stats` and `--statistics-only` ask for. Raises `UsageError` for a text that is no statistic."""
    return Estimator(statistics_only, Assumptions.parse(stats), CountMemo(pieces=MOST_PIECES), array=array)


def array_of(array: str | Path | ArraySettings | None) -> ArraySettings | None:
    """Return an array by its name or from its YAML file. Raises `ArrayError` or `FileError`."""
    return load_array(array) if isinstance(array, str | Path) else array


def estimate_saved(
    directory: Path, tensors: str | Path | Mapping[str, Any] | None, machine: Machine, estimator: Estimator
) -> ProgramEstimate:
    """Estimate the graphs in a directory that `fuseflow compile -o` wrote, which holds its schedule and needs no model."""
    saved = load_saved(directory, tensors)
    source = saved.source
    return estimator.estimate(saved.regions, source.program, source.tensors, machine, saved.model, saved.data, saved.notices)


def compiled_of(
    model: Model | Compiled,
    inputs: Sequence[Any] | Mapping[str, Any] | None,
    schedule: Schedule | None,
    machine: str | Path | Machine,
    arguments: ModelArguments,
    caller: Callable[..., Any],
    array: ArraySettings | None = None,
) -> Compiled:
    """Return a compiled program as it is, or a model compiled with the arguments of `fuseflow.compile`, for an array if there is one. Raise
    `TypeError` for an argument that neither takes."""
    refuse_unknown_arguments(arguments, caller)
    if not isinstance(model, Compiled):
        schedule = schedule or Schedule()
        refuse_auto(schedule)
        return compile_source(load_model(model, inputs, arguments, caller), schedule, load_machine(machine), array=array)
    given = ["inputs"] * (inputs is not None) + ["schedule"] * (schedule is not None) + list(arguments)
    if given:
        raise TypeError(f"{caller.__name__}() takes no `{given[0]}` beside a compiled program, which has one")
    return model


def estimate(
    model: Model | Compiled,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    stats: str | Sequence[str] = (),
    statistics_only: bool = False,
    array: str | Path | ArraySettings | None = None,
    **arguments: Unpack[ModelArguments],
) -> ProgramEstimate:
    """Estimate FLOPs, bytes, firings and cycles of a model without running it, as `fuseflow estimate` does.

    `model` is a `Compiled` program, a directory that `fuseflow compile -o` wrote, or a model with the arguments of `fuseflow.compile`.
    FLOPs, bytes and firings are those of the simulator, counted from where the tensors store something. `stats` has statistics in the
    place of tensors (`"A.density=0.001,degree=powerlaw:2.3"`), and `statistics_only` knows of all tensors how much they store, but not
    where; then these numbers are expected ones. Cycles are always expected: what the busiest node, the memory and the longest wait allow.
    With an `array`, the estimate knows the tiles that each region takes there.

    Raises a subclass of `FuseFlowError` for a model, a schedule or a statistic that is wrong.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> ff.estimate(text, ([[1, 0], [2, 3]], [4, 5]))
    <ProgramEstimate program: about ... cycles, 1 regions, on rda>
    >>> ff.estimate(text, stats="A.density=0.5").exact
    False
    """
    settings = array_of(array)
    estimator = estimator_of([stats] if isinstance(stats, str) else stats, statistics_only, settings)
    if isinstance(model, str | Path) and "\n" not in str(model) and Path(model).is_dir():
        refuse_unknown("estimate", arguments, ("tensors",))
        return estimate_saved(Path(model), arguments.get("tensors", inputs), load_machine(machine), estimator)  # type: ignore[arg-type]
    return compiled_of(model, inputs, schedule, machine, arguments, estimate, settings).estimate(estimator)
