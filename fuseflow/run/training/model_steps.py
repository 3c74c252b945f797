"""The steps of a model: what each step gets as inputs beside what it carries, and PyTorch's step beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from fuseflow.einsum.nodes import Program
from fuseflow.errors import TrainingError
from fuseflow.frontend.imported_program import StepInterface
from fuseflow.frontend.importer import rebound, step_masks, step_reference
from fuseflow.frontend.torch_tensors import to_torch
from fuseflow.frontend.trace.model_call import ModelCall
from fuseflow.run.check import PYTORCH, Check, Difference
from fuseflow.run.training.steps import StepPlan
from fuseflow.run.training.training_run import TrainingRun
from fuseflow.tensors import Tensor, repack
from fuseflow.training.check import StepCheck, check_step
from fuseflow.training.random_rounding import RandomRounding
from fuseflow.training.reference import Reference, StepValues

LearningRates = Callable[[int], float]
"""A function that returns the learning rate of a step, counted from 1."""
ROUNDED_RUNS = 8
"""How many runs round at random where the check of a step would not pass otherwise. The largest error of eight runs is that of one run in
eight, and 8 times that passes."""


@dataclass(frozen=True, slots=True)
class PyTorchStep:
    """A step that PyTorch takes of the values `given`, by their names in the model: in its own floats (`expected`), and in 64 bits
    (`exact`). `again` takes it in 64 bits once more, None if PyTorch cannot."""

    given: Mapping[str, torch.Tensor]
    expected: StepValues
    exact: StepValues
    again: Callable[[], StepValues] | None


@dataclass(slots=True)
class ModelSteps:
    """The inputs of the steps of a model, and their check. `program` is the one that was imported, and `stored` the compiled one, which may
    store inputs in other formats. `rates` returns other learning rates than the optimizer's.

    Each step is compared with one that PyTorch begins with the same values, since two runs drift apart by rounding alone. `losses` are
    those of a run that PyTorch takes by itself beside them, and `first_check` is the check of the first step.
    """

    interface: StepInterface
    program: Program
    stored: Program
    rates: LearningRates | None = None
    _references: tuple[Reference, Reference | None] | None = None
    _random_state: torch.Tensor | None = None
    _current: ModelCall | None = None
    rounding: set[str] = field(default_factory=set)
    losses: list[float] = field(default_factory=list)
    first_check: Check | None = None
    _own_values: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def planned(self, plan: StepPlan, check: bool) -> StepPlan:
        """Return a plan whose steps get the numbers and the draws of the model, and whose batches are those of the model."""
        others = plan.scalars
        return replace(
            plan,
            scalars=lambda number: {**self.inputs(number), **(others(number) if others else {})},
            batches=None if plan.batches is None else self.batches(plan.batches),
            check=self.check if check else plan.check,
        )

    def run(self, plan: StepPlan, check: bool, run: Callable[[StepPlan], TrainingRun]) -> TrainingRun:
        """Return what `run` gives for a plan with the inputs of the model, its state by the names in the model, and PyTorch's losses."""
        steps = run(self.planned(plan, check))
        return replace(
            steps,
            first=replace(steps.first, check=self.first_check),
            state={self.interface.original(name): tensor for name, tensor in steps.state.items()},
            reference_losses=tuple(self.losses),
            rounding=tuple(sorted(self.rounding)),
        )

    def inputs(self, number: int) -> dict[str, Any]:
        """Return the numbers of a step and what it draws, which PyTorch's generator gives as it stands. Steps are counted from 1."""
        interface = self.interface
        training = interface.model().training  # a model that is built only now seeds the generator
        self._random_state = torch.get_rng_state()
        step = interface.first_step - 1 + number
        scalars = training.scalars(step, self._rate(number))
        return {**scalars, **{draw.name: draw.drawn() for draw in interface.draws}}

    def batches(self, batches: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the inputs of the program for one batch of the model after the other. A batch has arguments of the model by name, and the
        `target`."""
        for batch in batches:
            self._current, tensors = rebound(self.interface, self.program, batch)
            formats = {name: self.stored.declared[name].format or tensor.format for name, tensor in tensors.items()}
            yield {
                name: tensor if tensor.format == formats[name] else repack(tensor, formats[name])
                for name, tensor in tensors.items()
            }

    def check(self, number: int, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Check:
        """Compare the outputs of a step with PyTorch's."""
        return self.compare(self.taken(number, inputs), outputs)

    def taken(self, number: int, inputs: Mapping[str, Tensor]) -> PyTorchStep:
        """Return the step that PyTorch takes of the inputs of a step. Raise `TrainingError` if it cannot."""
        interface, call = self.interface, self._current or self.interface.model().call
        assert call.criterion is not None
        single, double = self._own_references(call)
        given = {**single.initial, **interface.states}
        given |= {name: _like(tensor, given[name]) for name, tensor in self._by_original(inputs) if name in given}

        def step(reference: Reference, given: Mapping[str, torch.Tensor] = given) -> StepValues:
            assert call.criterion is not None
            with call.deterministic(), _one_thread():
                return reference.step(
                    given, interface.first_step - 1 + number, call.args, call.criterion.target, kwargs=call.kwargs,
                    lr=self._rate(number), random_state=call.generator_state if self._random_state is None else self._random_state,
                )  # fmt: skip

        expected = step(single)
        try:
            exact = expected if double is None else step(double)
        except TrainingError:  # a model that computes in f32 whatever it is given
            exact = expected
        alone = step(single, self._own_values) if self._own_values else expected
        self._own_values = alone.carried
        self.losses.append(float(alone.loss))
        return PyTorchStep(given, expected, exact, None if double is None else partial(step, double))

    def compare(self, step: PyTorchStep, outputs: Mapping[str, Tensor]) -> Check:
        """Compare the outputs of a step with those of PyTorch's step."""
        # What has no new value stays as it is.
        values: dict[str, Any] = {f"next.{name}": value.detach().to_dense().numpy() for name, value in step.given.items()}
        for name, tensor in outputs.items():
            kind, dot, own = name.partition(".")
            name = f"{kind}{dot}{self.interface.original(own)}"
            wanted = step.exact.results.get(name)
            values[name] = tensor.to_dense() if wanted is None else tensor.to_dense().reshape(tuple(wanted.shape))
        masks = step_masks(self.interface)
        comparison = check_step(values, step.expected, step.exact, masks)
        if not comparison.passed and not comparison.faults and step.again is not None:
            comparison = check_step(values, step.expected, step.exact, masks, _rounded_runs(step.again))
        self.rounding |= set(comparison.rounding)
        check = _as_check(comparison, values, step.exact)
        self.first_check = self.first_check or check
        return check

    def _rate(self, number: int) -> float | None:
        return None if self.rates is None else self.rates(number)

    def _own_references(self, call: ModelCall) -> tuple[Reference, Reference | None]:
        if self._references is None:
            try:
                double = step_reference(self.interface, call, torch.float64)
            except (TrainingError, RuntimeError):
                double = None
            self._references = step_reference(self.interface, call), double
        return self._references

    def _by_original(self, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        return ((self.interface.original(name), tensor) for name, tensor in tensors.items())


def _rounded_runs(step: Callable[[], StepValues]) -> list[StepValues]:
    """Return what runs of a step give that round at random, or nothing if PyTorch cannot run an operator so."""
    runs = list[StepValues]()
    for seed in range(ROUNDED_RUNS):
        try:
            with RandomRounding(seed):
                runs.append(step())
        except TrainingError:
            return []
    return runs


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let PyTorch compute on one thread in the block. Several threads take thirty times as much processor time for the small products of a
    step, since they wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _like(tensor: Tensor, model: torch.Tensor) -> torch.Tensor:
    """Return a packed tensor as PyTorch has it: dense, with all dimensions."""
    return to_torch(tensor).to_dense().reshape(model.shape).to(model.dtype)


def _as_check(comparison: StepCheck, values: Mapping[str, Any], exact: StepValues) -> Check:
    worst = comparison.worst
    if worst is None:
        return Check(PYTORCH, comparison.passed, 0.0)
    value, wanted = (np.asarray(x, dtype=np.float64) for x in (values[worst.name], exact.results[worst.name].detach().to_dense()))
    place = np.unravel_index(int(np.argmax(np.abs(value - wanted))), value.shape) if value.size else ()
    largest = Difference(tuple(map(int, place)), float(value[place]), float(wanted[place])) if value.size else None
    count = sum(int(np.size(values[tensor.name])) for tensor in comparison.tensors)
    return Check(PYTORCH, comparison.passed, worst.error, 0, worst.name, largest, count)
