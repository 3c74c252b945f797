"""A source: the program of a model, with its tensors and all that is known about where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.errors import AttributesError, UsageError, did_you_mean
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.model_spec import PropagationSpec
from fuseflow.plan.plan import Plan
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    import torch

    from fuseflow.frontend.trace.model_call import ModelCall
    from fuseflow.propagation.analysis import Analysis
    from fuseflow.propagation.attribute_table import AttributeRow
    from fuseflow.propagation.dead_code import Propagation
    from fuseflow.training.spec import TrainingSpec

NodeValues: TypeAlias = Mapping[str, npt.NDArray[np.generic]]
"""The values that PyTorch computes on the way to the outputs of a model, by the names of the Einsums that compute the same.
Dimensions of extent 1 are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class StepModel:
    """The model of a training step in PyTorch: the spec of the step, the call of the model whose loss it is, and a function that
    returns the inputs of the same program for another call."""

    training: TrainingSpec
    call: ModelCall
    imported: Callable[[ModelCall], Mapping[str, Tensor]]


@dataclass(frozen=True, slots=True, eq=False)
class StepInterface:
    """What the inputs and outputs of a program mean that is a training step.

    Input `layer1.weight` is a parameter, `layer1.weight.momentum_buffer` a state of its optimizer, and `lr` a number of the step, as
    `TrainingSpec.scalars` gives them; outputs are `loss`, `next.layer1.weight` and, if asked for, `grad.layer1.weight`. `trained` has the
    name in the model of each parameter that is changed, by its name in the program. The tensors `draws` are drawn in this order in each
    step. `masks` are the patterns of pruned weights by their names in the model, true where an entry is kept. `states` are the states of
    the optimizer that it begins with. `first_step` is the number of the first step, counted from 1; it is higher for an optimizer that has
    taken steps before. `model` returns the model, which is built first if the program was kept from an earlier run.
    """

    trained: Mapping[str, str]
    draws: Sequence[Draw]
    masks: Mapping[str, npt.NDArray[np.bool_]]
    states: Mapping[str, torch.Tensor]
    first_step: int
    model: Callable[[], StepModel]

    def original(self, name: str) -> str:
        """Return the name in the model of an input that is a parameter or a state of one, and the name itself of any other."""
        for program_name, original in self.trained.items():
            if name == program_name or name.startswith(f"{program_name}."):
                return original + name.removeprefix(program_name)
        return name


@dataclass(frozen=True, slots=True)
class Source:
    """A program with its tensors.

    `tensors` are the inputs that are available, by name. `expected` are the outputs that PyTorch computes, or None if the dense
    interpreter is the reference. `intermediates` computes the intermediates of PyTorch, by the names of Einsums. `mlir` is the
    Linalg form of a program that has one. `data`, `options` and `seed` belong to a model file. `notices` are shown beside every
    result. `seconds` is the time that the import took. `constants` are the names of inputs that are the same in every run:
    weights, buffers, and tensors that follow from them alone. `selections` are the selections that the compiler made for indices with an
    offset or a factor. `masks` are the masks of pruned weights that are stored dense or in blocks, true at entries that are not pruned.

    A source that was rewritten has `original`, the source that it was made of, which defines its outputs. `simplified` says which
    elements were left out of it, and `plan` which of its operands are divided into parts. `exported` returns the text of a
    PyTorch model as PyTorch exports it. `affine` is the program before the compiler made selections of its indices with an offset
    or a factor, if it has any. `copies` are inputs that hold the same as another input, in another format: the name of the other, by name.
    `arranged` says that the layouts of a training step were chosen. `step` says what inputs and outputs mean in a training step of a model.
    """

    name: str
    program: Program
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    expected: Mapping[str, npt.NDArray[np.generic]] | None = None
    mlir: str | None = None
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
    constants: tuple[str, ...] = ()
    selections: tuple[str, ...] = ()
    masks: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    original: Source | None = None
    simplified: Simplification | None = None
    plan: Plan = field(default_factory=Plan)
    intermediates: Callable[[], NodeValues] = field(default=dict, compare=False)
    affine: Program | None = None
    copies: Mapping[str, str] = field(default_factory=dict)
    arranged: bool = False
    exported: Callable[[], str] | None = field(default=None, compare=False)
    step: StepInterface | None = field(default=None, compare=False)

    @property
    def exported_text(self) -> str:
        """The text of a PyTorch model as PyTorch exports it. Raises `UsageError` for any other source."""
        if self.exported is None:
            message = f"`{self.name}` is no PyTorch model, so it has no exported program"
            raise UsageError(message, hint="show a stage from `linalg` on")
        return self.exported()

    @property
    def stated_program(self) -> Program:
        """The program, with its indices that have an offset or a factor as the user has them, unless it was rewritten since."""
        return self.program if self.affine is None or self.original is not None else self.affine


@dataclass(frozen=True, slots=True, eq=False)
class Simplification:
    """The analysis of a source, the program and tensors that are left of it, and a row for each tensor."""

    analysis: Analysis
    propagation: Propagation
    rows: tuple[AttributeRow, ...]


class ReferenceOutputs(Mapping[str, npt.NDArray[np.generic]]):
    """The outputs of the model by name. They are computed when the first of them is read, so that compiling alone does not wait for
    PyTorch."""

    __slots__ = ("_compute", "_names", "_values")

    def __init__(self, names: Sequence[str], compute: Callable[[], Sequence[npt.NDArray[np.generic]]]) -> None:
        self._names, self._compute = tuple(names), compute
        self._values: dict[str, npt.NDArray[np.generic]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        if name in self._names and not self._values:
            self._values = dict(zip(self._names, self._compute(), strict=True))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_propagation(value: PropagationSpec | bool | None) -> PropagationSpec | None:
    """Return the value of `ModelSpec.propagate`. True means a spec that takes only stored patterns as known."""
    if isinstance(value, bool):
        return PropagationSpec() if value else None
    return value


def propagated(source: Source, spec: PropagationSpec) -> Source:
    """Return a source without what its outputs do not need. Its notices say how much that is. Raise `AttributesError` for a pattern that
    names no input."""
    # These take long to load, and a source that is kept does without.
    from fuseflow.propagation.analysis import analyse
    from fuseflow.propagation.attribute import attributes_of
    from fuseflow.propagation.attribute_table import attribute_rows
    from fuseflow.propagation.dead_code import propagate

    if (sharing := next((t for t in source.program.tensors if t.like), None)) is not None:
        message = f"`{sharing.name}` has the places of `{sharing.like}`: no entry of them can be left out"
        raise AttributesError(message, hint="leave propagation out")
    fixed, names = set(source.constants), [tensor.name for tensor in source.program.inputs]
    for pattern in spec.fixed:
        matching = [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise AttributesError(f"no input is called `{pattern}`", hint=did_you_mean(pattern, names))
        fixed |= set(matching)
    constants = source.constants if spec.constants else ()
    analysis = analyse(source.program, attributes_of(source.program, source.tensors, fixed, constants, source.masks))
    propagation = propagate(source.program, source.tensors, analysis)
    rows = attribute_rows(source.program, source.tensors, analysis, propagation, source.constants)
    before, now = (sum(t.stored for t in tensors.values()) for tensors in (source.tensors, propagation.tensors))
    statements = len(source.program.einsums) - len(propagation.program.einsums)
    left_out = [f"{before - now:,} of {before:,} stored values"] if now < before else []
    left_out += [f"{statements} of {len(source.program.einsums)} statements"] if statements else []
    notices = [f"left out, since no output needs it: {' and '.join(left_out)}"] if left_out else []
    return replace(
        source,
        program=propagation.program,
        tensors=propagation.tensors,
        notices=(*source.notices, *notices),
        original=source,
        simplified=Simplification(analysis, propagation, rows),
    )
