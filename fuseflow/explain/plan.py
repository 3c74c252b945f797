"""What a plan saves: the entries and the cost of each part of an operand, and the cycles of the program with and without the
plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fuseflow.compiler import compile_source
from fuseflow.einsum.blocks import tensors_to_blocks
from fuseflow.errors import UsageError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.imported_program import Source
from fuseflow.machine.machine import Machine
from fuseflow.plan.partition import Part
from fuseflow.plan.plan import Plan
from fuseflow.plan_application import planned
from fuseflow.schedule import Schedule
from fuseflow.tensors import Format
from fuseflow.tensors.array_files import pack_declared


@dataclass(frozen=True, slots=True)
class PartCost:
    """A part of an operand: how many `entries` it holds in how many `blocks`, its bytes, and the cost of one block (`weight`) and
    of all blocks, in cycles of one product unit. An n:m part has no blocks."""

    operand: str
    form: str
    entries: int
    blocks: int | None
    nbytes: int
    weight: float | None

    @property
    def cost(self) -> float | None:
        """The cost of all blocks of the part, None if it has none, or if the cost of one is not known."""
        return None if self.weight is None or self.blocks is None else self.weight * self.blocks


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The parts of all operands, and the cycles of the program, each first with the plan and then without: expected, and if asked
    for, simulated."""

    parts: tuple[PartCost, ...]
    estimated: tuple[float, float]
    simulated: tuple[int, int] | None = None


NO_PLAN = PlanReport((), (0.0, 0.0))
"""The report of a program without a plan."""


def explain_plan(source: Source, schedule: Schedule, machine: Machine, simulate: bool = False) -> PlanReport:
    """Return the entries and costs of the parts of a plan, and the cycles with it and without. Raise `UsageError` for a schedule
    without a plan."""
    if not schedule.plan:
        raise UsageError("the schedule has no plan", hint="`--plan FILE`, or a section `plan` in the schedule file")
    before, after = replace(schedule, plan=Plan()), planned(source, schedule, machine)[1]
    divided, whole = compile_source(source, after, machine), compile_source(source, before, machine)
    estimated = [each.estimate(Estimator(assume_unknown=True)).cycles for each in (divided, whole)]
    simulated = (divided.run(check=False).cycles, whole.run(check=False).cycles) if simulate else None
    operands = after.plan.parts(source.program, source.tensors)
    parts = tuple(cost for name, its_parts in operands for cost in _costs(source, name, its_parts, after.plan))
    return PlanReport(parts, (estimated[0], estimated[1]), simulated)


def _costs(source: Source, name: str, parts: tuple[Part, ...], plan: Plan) -> list[PartCost]:
    weights = {part.form: part.weight for part in dict(plan.operands)[name]}
    declared, values = source.program.declared[name], source.tensors[name].to_dense()
    costs = []
    for part in parts:
        block = part.form.block if max(part.form.block) > 1 else ()
        format = part.form.format(declared.format or Format.dense(2))
        stored = replace(declared, format=format, dtype=part.form.dtype or declared.dtype, block=block)
        tensor = pack_declared(np.where(part.entries, values, 0), replace(stored, block=()))
        nbytes = tensors_to_blocks({name: stored}, {name: tensor})[name].nbytes
        costs.append(PartCost(name, str(part.form), int(part.entries.sum()), _blocks(part), nbytes, weights.get(part.form)))
    return costs


def _blocks(part: Part) -> int | None:
    """Return how many blocks of a part hold an entry."""
    if part.form.nm is not None:
        return None
    rows, columns = part.form.block
    padding = [(0, -part.entries.shape[d] % size) for d, size in enumerate((rows, columns))]
    padded = np.pad(part.entries, padding)
    tiles = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    return int(tiles.any(axis=(1, 3)).sum())
