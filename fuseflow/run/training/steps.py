"""Steps of a program: its outputs `next.X` become its inputs `X` in the next step.

A step is simulated, or its values alone are computed. Cycles depend on the places of stored entries, and on values only in a graph that
drops entries by their values. So the cycles of a simulated step are those of every step that reads entries in the same places, and such a
step needs values alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from fuseflow.einsum.blocks import guard_data, tensors_to_blocks, tensors_to_elements
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.phases import GRADIENT, LOSS, NEXT, carried_inputs
from fuseflow.einsum.sparse_arrays import Operand, dense
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.source_values import holding, packed_values
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.machine import Machine
from fuseflow.run.check import Check, combine_checks
from fuseflow.run.input_tensors import inputs_of, user_inputs
from fuseflow.run.result import Result
from fuseflow.run.training.step_values import StepInterpreter, packed_like, places_of
from fuseflow.run.training.training_run import TrainingRun, TrainingStep
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.levels.base import Fibers

Scalars: TypeAlias = Callable[[int], Mapping[str, float]]
"""A function that returns numbers by the names of inputs, such as the learning rate, for a step, counted from 1."""
CheckStep: TypeAlias = Callable[[int, Mapping[str, Tensor], Mapping[str, Tensor]], Check]
"""A function that checks a step, given its number, its inputs, and its outputs."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Which steps are run, and on what.

    `scalars` and `batches` give other values for inputs in each step. `simulated` is the most steps with cycles, None for all whose cycles
    are not known. `gradients` says whether the outputs `grad.X` of each step are kept. `check` is a function that checks each step.
    """

    steps: int
    scalars: Scalars | None = None
    batches: Iterable[Mapping[str, Any]] | None = None
    simulated: int | None = None
    gradients: bool = False
    check: CheckStep | None = None

    def __post_init__(self) -> None:
        for what, number in (("steps", self.steps), ("simulate", 1 if self.simulated is None else self.simulated)):
            if number < 1:
                raise UsageError(f"`{what}={number}` runs nothing", hint="1 or more; the first step is always simulated")

    def is_due(self, step: int) -> bool:
        """Return whether a step is to be simulated if its cycles are not known."""
        return self.simulated is None or (step - 1) % math.ceil(self.steps / self.simulated) == 0


@dataclass(frozen=True, slots=True)
class StepSimulation:
    """The simulation of a step: its number, its cycles, and the places of its outputs, in which later steps store theirs."""

    number: int
    cycles: int
    places: Mapping[str, Tensor]


@dataclass(slots=True)
class StepRunner:
    """The steps of a program. `tensors` are its inputs in single elements and in the formats of the program, as `pack` packs values.
    `simulate` runs a step on some inputs, and checks it."""

    program: Program
    regions: tuple[CompiledRegion, ...]
    tensors: dict[str, Tensor]
    pack: Callable[[Mapping[str, Any]], Mapping[str, Tensor]]
    simulate: Callable[[Mapping[str, Tensor]], Result]
    interpreter: StepInterpreter
    plan: StepPlan
    _known: dict[Hashable, StepSimulation] = field(default_factory=dict)
    _checks: list[Check] = field(default_factory=list)
    _first: Result | None = None
    _digests: dict[str, tuple[tuple[Fibers, ...], str]] = field(default_factory=dict)
    _last: StepSimulation | None = None

    def run(self) -> TrainingRun:
        """Run all steps. Raise `UsageError` for a program whose outputs are no inputs of the next step, and for too few batches."""
        check_carried(self.program, self.regions)
        carried = carried_inputs(self.program)
        gradients = [name for name in self.program.outputs if name.startswith(f"{GRADIENT}.")] if self.plan.gradients else []
        if self.plan.gradients and not gradients:
            raise UsageError(f"`{self.program.name}` has no output `{GRADIENT}.X`", hint="leave `gradients` out")
        fills = {tensor.name: tensor.fill for tensor in self.program.inputs}  # a dense tensor may be written with another one
        own = ((name, self.tensors[name]) for name in carried.values() if name in self.tensors)
        self.tensors |= {name: replace(tensor, values=tensor.values.copy()) for name, tensor in own}  # and not arrays of the user
        steps, batches = list[TrainingStep](), iter(self.plan.batches) if self.plan.batches is not None else None
        for number in range(1, self.plan.steps + 1):
            self.tensors |= self.pack(self._given(batches, number, carried))
            outputs, simulated = self._step(number, carried)
            if self.plan.check is not None:
                self._checks.append(self.plan.check(number, dict(self.tensors), outputs))
            loss = float(outputs[LOSS].to_dense()) if LOSS in outputs and not outputs[LOSS].shape else None
            kept = {name.removeprefix(f"{GRADIENT}."): outputs[name] for name in gradients}
            cycles, by = (None, None) if simulated is None else (simulated.cycles, simulated.number)
            steps.append(TrainingStep(number, loss, cycles, by, kept))
            self.tensors |= {name: replace(outputs[output], fill=fills[name]) for output, name in carried.items()}
        assert self._first is not None
        state = {name: self.tensors[name] for name in carried.values()}
        check = combine_checks(self._checks, self._checks[0].reference) if self._checks else None
        return TrainingRun(self._first, tuple(steps), state, check)

    def _given(self, batches: Iterator[Mapping[str, Any]] | None, number: int, carried: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the inputs that a step is given: those of its batch, and its scalars."""
        given = {} if batches is None else next(batches, None)
        if given is None:
            raise UsageError(f"the batches end before step {number} of {self.plan.steps}", hint="`itertools.cycle` begins again")
        given = {**given, **(self.plan.scalars(number) if self.plan.scalars else {})}
        for output, name in carried.items():
            if name in given:
                message = f"step {number} is given `{name}`, which is `{output}` of the step before"
                raise UsageError(message, hint=f"`tensors` has the value of `{name}` in the first step")
        return given

    def _step(self, number: int, carried: Mapping[str, str]) -> tuple[Mapping[str, Tensor], StepSimulation | None]:
        """Return the outputs of a step, and the simulation that has its cycles, None if there is none."""
        places = self._places()
        known = self._known.get(places)
        pattern = known or self._last
        if pattern is not None and (known is not None or not self.plan.is_due(number)):
            outputs = self._interpreted(pattern.places, carried)
            if outputs is not None:
                return outputs, known
        result = self.simulate(self.tensors)
        self._first = self._first or result
        self._last = StepSimulation(number, result.cycles, {name: places_of(tensor) for name, tensor in result.tensors.items()})
        if places is not None:
            self._known[places] = self._last
        if result.check is not None:
            self._checks.append(result.check)
        return result.tensors, self._last

    def _places(self) -> Hashable | None:
        """Return a key that is equal for steps with the same cycles. None for a graph that drops entries by their values."""
        if any(node.by_value for region in self.regions for node in region.graph.nodes):
            return None
        return tuple((name, self._digest(name, tensor)) for name, tensor in self.tensors.items() if not tensor.format.all_dense)

    def _digest(self, name: str, tensor: Tensor) -> str:
        """Return a digest of the places of an input, which is computed anew if it has other levels than in the last step."""
        kept = self._digests.get(name)
        if kept is None or kept[0] is not tensor.levels:
            kept = self._digests[name] = tensor.levels, replace(tensor, values=tensor.values[:0]).digest()
        return kept[1]

    def _interpreted(self, patterns: Mapping[str, Tensor], carried: Mapping[str, str]) -> Mapping[str, Tensor] | None:
        """Return the outputs of a step, computed by the interpreter and stored in the places of `patterns`. None if a carried output has
        values in other places: only a simulation says what it stores."""
        outputs = dict[str, Tensor]()
        for name, values in self.interpreter.outputs(self.tensors).items():
            stored = packed_like(values, patterns[name])
            if stored is None and name in carried:
                return None
            outputs[name] = _packed_by_value(values, patterns[name]) if stored is None else stored
        return outputs


def check_carried(program: Program, regions: Iterable[CompiledRegion]) -> None:
    """Raise `UsageError` for a program without outputs that are its inputs in the next step, and for an output that no input takes over as
    it is stored."""
    inputs = {tensor.name: tensor for tensor in program.inputs}
    written: dict[str, TensorType] = {}
    for region in regions:
        written |= {**region.result_types, **{view.name: view.type for view in region.views_after}}
    outputs = [name for name in program.outputs if name.startswith(f"{NEXT}.")]
    if not outputs:
        raise UsageError(
            f"`{program.name}` has no output `{NEXT}.X` that is its input `X` in the next step",
            hint=f"name the new value of an input `W` `{NEXT}.W`, or run without `steps`",
        )
    for output in outputs:
        name = output.removeprefix(f"{NEXT}.")
        if name not in inputs:
            raise UsageError(f"the program has the output `{output}`, and no input `{name}`", hint=did_you_mean(name, inputs))
        new, old = _attributes(written.get(output, program.declared[output])), _attributes(inputs[name])
        for what in old:
            if new[what] != old[what]:
                raise UsageError(
                    f"`{output}` has {what} {new[what]}, and `{name}`, which it is in the next step, has {old[what]}: a step reads what "
                    "the step before wrote as it is",
                    hint=f"declare both alike, such as by `--format {output}={old['the format']}`",
                )


def _attributes(type: TensorType) -> dict[str, str]:
    """Return what must be equal of an output and the input that it becomes, as text."""
    format = type.format or Format.dense(len(type.shape))
    fill = {} if format.all_dense else {"the implicit value": f"{type.fill:g}"}
    return {
        "the shape": str(list(type.shape)),
        "the type": type.dtype,
        "blocks": str(list(type.block)),
        "the format": format.short(),
        **fill,
    }


def _packed_by_value(values: Operand, like: Tensor) -> Tensor:
    """Pack the values of an output that nothing reads again, which are not the implicit one, in the format of `like`."""
    type = like.element_type
    return pack(type.hold(dense(values)), like.format, like.fill, type=type)


def run_steps(
    source: Source,
    program: Program,
    regions: tuple[CompiledRegion, ...],
    machine: Machine,
    plan: StepPlan,
    simulate: Callable[[Source], Result],
) -> TrainingRun:
    """Run several steps. `simulate` runs the program on a source that holds the inputs of one step. Raise `UsageError` for a program whose
    outputs are no inputs of the next step, and for too few batches."""
    declared = program.declared

    def in_elements(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return tensors with all elements of the blocks that they store something of, as an output in blocks has them."""
        return tensors_to_elements(declared, tensors_to_blocks(declared, tensors))

    def packed(values: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return values of some inputs as the program stores them, but in single elements."""
        tensors = packed_values(source, values, declared)
        types = [t for t in user_inputs(source, program) if t.name in tensors]
        return in_elements(inputs_of(holding(source, tensors), types))

    available = [t for t in user_inputs(source, program) if t.name in source.tensors]
    guards = {t.name: guard_data(t) for t in program.inputs if t.name not in source.program.declared}
    return StepRunner(
        program,
        regions,
        in_elements(inputs_of(source, available)),
        packed,
        lambda tensors: simulate(holding(source, tensors)),
        StepInterpreter(program, machine.is_wide, tensors_to_elements(declared, guards)),
        plan,
    ).run()
