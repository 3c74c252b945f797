"""`fuseflow.autoschedule`: the choice of what a schedule leaves open, or of all that it decides within a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from fuseflow.autoscheduler.autoscheduler import ScheduleChoice, choose_schedule
from fuseflow.autoscheduler.budget.request import BudgetRequest
from fuseflow.autoscheduler.budget.scheduler import budget_schedule
from fuseflow.autoscheduler.budget.trials import BudgetChoice
from fuseflow.autoscheduler.search_defaults import DEFAULT_TOP
from fuseflow.errors import UsageError
from fuseflow.frontend.sources import load_model
from fuseflow.machine.files import load_machine
from fuseflow.machine.machine import Machine
from fuseflow.resources.budget import Budget
from fuseflow.sampling.sample_request import Sample
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import Model, ModelArguments


@overload
def autoschedule(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    top: int = DEFAULT_TOP,
    sample: Sample | None = None,
    budget: None = None,
    **arguments: Unpack[ModelArguments],
) -> ScheduleChoice: ...


@overload
def autoschedule(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    top: int = DEFAULT_TOP,
    sample: None = None,
    budget: Budget | str | Mapping[str, int | str],
    pareto: Sequence[str] = (),
    allow: Sequence[str] = (),
    limit: float | None = None,
    **arguments: Unpack[ModelArguments],
) -> BudgetChoice: ...


def autoschedule(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    top: int = DEFAULT_TOP,
    sample: Sample | None = None,
    budget: Budget | str | Mapping[str, int | str] | None = None,
    pareto: Sequence[str] = (),
    allow: Sequence[str] = (),
    limit: float | None = None,
    **arguments: Unpack[ModelArguments],
) -> ScheduleChoice | BudgetChoice:
    """Choose what a schedule leaves to `auto`. Without a schedule, `Schedule.fuse("auto")` is taken.

    The other parameters are as in `fuseflow.compile`. `top` is how many of the best candidates by estimate are simulated, 0 for
    none. With a `sample`, they are sampled, and plans and orders are chosen by estimate.

    With a `budget`, such as `{"mul": 64, "fifo": "1MB"}`, `"small,mul=32"` or a `Budget`, the schedule with the fewest cycles is
    chosen whose regions stay within it: which operators are fused, loop orders, lanes, and what `allow` names, such as
    `("formats",)`. `pareto` names resources for which a curve of cycles is wanted. The search stops after `limit` seconds.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> choice = ff.autoschedule(text, ([[1, 0], [2, 3]], [4, 5]), machine="ideal")
    >>> choice.run().check.passed
    True
    >>> ff.autoschedule(text, ([[1, 0], [2, 3]], [4, 5]), budget={"mul": 1}).schedule.parallel
    ()
    """
    hardware = load_machine(machine)
    if budget is None:
        given = {"pareto": tuple(pareto), "allow": tuple(allow), "limit": limit}
        for name, value in given.items():
            if value:
                raise UsageError(f"`{name}` without a budget", hint='as in `budget={"mul": 64}`')
    elif sample is not None:
        raise UsageError("under a budget, schedules are simulated in full", hint="leave `sample` or `budget` out")
    request = None if budget is None else BudgetRequest(Budget.of(budget), tuple(pareto), frozenset(allow), top, limit)
    source = load_model(model, inputs, arguments, autoschedule)
    if request is not None:
        return budget_schedule(source, schedule or Schedule(), hardware, request)
    return choose_schedule(source, Schedule.fuse("auto") if schedule is None else schedule, hardware, top=top, sample=sample)
