"""The result of steps: losses, cycles, the first step in full, and the state at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fuseflow.notebook_table import SummaryTable
from fuseflow.run.check import Check
from fuseflow.run.result import RegionResult, Result, check_json
from fuseflow.run.settings import Settings
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    import pandas
    import torch

    from fuseflow.run.training.phase_costs import PhaseCost


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
        from fuseflow.run.training.into_torch import load_state  # which loads PyTorch

        load_state(self.state, len(self.steps), model, optimizer)

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain values: the first step as any run, with its own check, and a row for each step."""
        rows = [{"step": s.number, "loss": s.loss, "cycles": s.cycles, "simulated": s.simulated} for s in self.steps]
        training = {
            "steps": rows,
            "reference_losses": list(self.reference_losses),
            "notes": list(self.notes),
            "check": check_json(self.check),
        }
        return {**self.first.to_json(), "training": training}

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain values: the first step as any run, with its own check, and a row for each step."""
        return self.to_json()

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
        from fuseflow.run.training.phase_costs import phase_costs  # few read it

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
