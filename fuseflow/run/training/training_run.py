"""The result of steps: losses, cycles, the first step in full, and the state at the end, which a PyTorch model can take over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fuseflow.costs.live_bytes import lifetimes, live_bytes_by_region, written_bytes
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.notebook_table import SummaryTable
from fuseflow.run.check import Check
from fuseflow.run.result import RegionResult, Result, check_json
from fuseflow.run.settings import Settings
from fuseflow.run.training.phase_costs import PhaseCost, phase_costs, region_phases, stored_for_later
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    import pandas
    import torch

    from fuseflow.lower.regions import CompiledRegion


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One step. `number` counts from 1. `loss` is the output `loss`, None if the program has none.

    `cycles` are those of the step `simulated`, which is this one, or one that reads and writes the same places of entries, so that its
    cycles are the same. Both are None if the values of this step alone were computed. `gradients` are the outputs `grad.X`, by
    `X`, if they were asked for.
    """

    number: int
    loss: float | None
    cycles: int | None
    simulated: int | None
    gradients: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """Steps of a program, each of which reads what the one before it wrote.

    `first` is the first step as any run. `state` has the values after the last step, packed, by the names of the inputs that they are
    carried to. `check` is the worst check of all steps, or None if none was checked.

    `reference_losses` are the losses of PyTorch's own run from the same beginning, if the steps of a model are checked. They are no
    criterion, since two runs drift apart by rounding. `rounding` are the outputs that are rounding alone, since their terms cancel.

    >>> import torch, fuseflow as ff
    >>> step = ff.training_step(torch.nn.Linear(3, 1), (torch.ones(4, 3),), torch.zeros(4, 1), loss="mse", optimizer="sgd:lr=0.1")
    >>> run = step.run(steps=2)
    >>> run.losses[1] < run.losses[0], run.phase_costs[0].phases
    (True, ('forward', 'loss', 'backward', 'update'))
    """

    first: Result
    steps: tuple[TrainingStep, ...]
    state: Mapping[str, Tensor]
    check: Check | None
    reference_losses: tuple[float, ...] = ()
    rounding: tuple[str, ...] = ()

    def __repr__(self) -> str:
        losses = self.losses
        loss = f", loss {losses[0]:.6g} to {losses[-1]:.6g}" if losses else ""
        verdict = "not checked" if self.check is None else f"check {self.check.verdict}"
        return f"<TrainingRun {self.settings.model}: {len(self.steps)} steps{loss}, {self.first.cycles:,} cycles in step 1, {verdict}>"

    def _repr_html_(self) -> str:
        columns = ("step", "loss", "loss of PyTorch's own run", "cycles", "cycles are of step")
        theirs = [*self.reference_losses, *[None] * (len(self.steps) - len(self.reference_losses))]
        rows = tuple(
            (
                s.number,
                _shown(s.loss),
                _shown(other),
                "" if s.cycles is None else s.cycles,
                "" if s.simulated is None else s.simulated,
            )
            for s, other in zip(self.steps, theirs, strict=True)
        )
        verdict = "not checked" if self.check is None else f"check {self.check.verdict}"
        title = f"{self.settings.model} on {self.settings.machine.name}: {len(self.steps)} steps, {verdict}"
        return SummaryTable(title, columns, rows).to_html()

    @property
    def losses(self) -> tuple[float, ...]:
        """The loss of each step, computed before its update. Empty for a program without an output `loss`."""
        return tuple(step.loss for step in self.steps if step.loss is not None)

    @property
    def cycles(self) -> tuple[int | None, ...]:
        """The cycles of each step, None where they are not known."""
        return tuple(step.cycles for step in self.steps)

    @property
    def regions(self) -> tuple[RegionResult, ...]:
        """The regions of the first step."""
        return self.first.regions

    @property
    def settings(self) -> Settings:
        """The settings of the compilation and of the first step."""
        return self.first.settings

    @property
    def gradients(self) -> tuple[Mapping[str, Tensor], ...]:
        """The gradients of each step, by the names of the inputs that they belong to. Empty mappings if they were not asked for."""
        return tuple(step.gradients for step in self.steps)

    def load_into(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Write the state after the last step into a PyTorch model whose parameters and buffers have the names of the inputs, and into its
        optimizer if there is one, which can go on from there. Raise `UsageError` for a name or a shape that the model does not have."""
        load_state(self.state, len(self.steps), model, optimizer)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values: the first step as any run, with its own check, and a row for each step."""
        rows = [{"step": s.number, "loss": s.loss, "cycles": s.cycles, "simulated": s.simulated} for s in self.steps]
        training = {
            "steps": rows,
            "reference_losses": list(self.reference_losses),
            "notes": list(self.notes),
            "check": check_json(self.check),
        }
        return {**self.first.to_dict(), "training": training}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each step as a `DataFrame` of pandas: its loss, that of PyTorch's own run, its cycles, and the step that was
        simulated for them. Raises `UsageError` without pandas."""
        from fuseflow.data_frames import data_frame  # few results are asked for one

        theirs = dict(enumerate(self.reference_losses, 1))
        return data_frame(
            {
                "step": s.number,
                "loss": s.loss,
                "reference_loss": theirs.get(s.number),
                "cycles": s.cycles,
                "simulated": s.simulated,
            }
            for s in self.steps
        )

    @property
    def phase_costs(self) -> tuple[PhaseCost, ...]:
        """The regions, cycles, FLOPs and bytes of the first step by phase: forward, loss, gradient and update."""
        return tuple(phase_costs(self.regions))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say for which steps the cycles of a simulated step hold, of which steps there are only values, and which outputs
        are rounding alone."""
        numbers = sorted({step.simulated for step in self.steps if step.simulated is not None})
        held = {number: [step.number for step in self.steps if step.simulated == number] for number in numbers}
        notes = [f"cycles of step {number} hold for steps {_ranges(steps)}" for number, steps in held.items() if len(steps) > 1]
        without = [step.number for step in self.steps if step.simulated is None]
        notes += [f"no cycles of steps {_ranges(without)}, whose values alone were computed"] if without else []
        names = ", ".join(f"`{name}`" for name in self.rounding)
        return (*notes, *([f"rounding alone, since their terms cancel: {names}"] if names else []))


def _shown(loss: float | None) -> str:
    return "" if loss is None else f"{loss:.6g}"


def _ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers as text, in which neighbours are ranges.

    >>> _ranges([1, 2, 3, 5])
    '1-3, 5'
    """
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def load_state(state: Mapping[str, Tensor], steps: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Write the state after some steps into a model, and into an optimizer if there is one: `layer.weight` is a parameter or a buffer, and
    `layer.weight.momentum_buffer` a state of it. Optimizers that count their steps count these, too.

    Raise `UsageError` for a name that is none of the model, and for another number of elements.
    """
    import torch

    from fuseflow.training.reference import stored_as  # loads PyTorch, too

    parameters = dict(model.named_parameters())
    held = {**parameters, **dict(model.named_buffers())}
    loaded = dict[str, torch.Tensor]()  # all are checked before the first is written
    for name, tensor in state.items():
        like = held.get(name, parameters.get(_owner(name, parameters)))
        if like is None:
            raise UsageError(f"the model has no parameter or buffer `{name}`", hint=did_you_mean(name, held))
        if like.numel() != tensor.to_dense().size:
            raise UsageError(f"`{name}` has the shape {list(like.shape)} in the model, and {list(tensor.shape)} in the program")
        loaded[name] = stored_as(like.detach(), torch.from_numpy(tensor.to_dense()).reshape(like.shape).to(like.dtype))
    with torch.no_grad():
        for name in loaded.keys() & held.keys():
            held[name].copy_(loaded[name])
    if optimizer is None:
        return
    for name in loaded.keys() - held.keys():
        owner = _owner(name, parameters)
        optimizer.state[parameters[owner]][name.removeprefix(f"{owner}.")] = loaded[name]
    if not isinstance(optimizer, torch.optim.SGD):
        for name in loaded.keys() & parameters.keys():
            counted = optimizer.state[parameters[name]]
            counted["step"] = counted.get("step", torch.tensor(0.0)) + steps


def _owner(name: str, parameters: Mapping[str, torch.Tensor]) -> str:
    """Return the longest name of a parameter that a state has before its own, or '' if there is none."""
    return max((parameter for parameter in parameters if name.startswith(f"{parameter}.")), key=len, default="")


SCHEMA = 1
"""The schema of the values of `training_values`."""


def training_values(program: Program, regions: Sequence[CompiledRegion], run: TrainingRun) -> dict[str, Any]:
    """Return what is told of the steps of a program, and not of their first one alone, as plain values: losses, costs by phase, the bytes
    of intermediates that are alive in each region, and what is stored for the backward."""
    written = written_bytes(run.first.stats)
    steps = [(region.graph, region.views) for region in regions]
    alive = live_bytes_by_region(lifetimes(steps, program.outputs), written, len(steps))
    return {
        "schema": SCHEMA,
        **run.to_dict()["training"],
        "phases": [asdict(cost) for cost in phase_costs(run.regions)],
        "live": [
            {"region": region.name, "phases": list(region_phases(region)), "bytes": int(number)}
            for region, number in zip(regions, alive, strict=True)
        ],
        "stored": [asdict(row) for row in stored_for_later(program, regions, written)],
    }
