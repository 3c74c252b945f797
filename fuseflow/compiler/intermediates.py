"""Runs in which every region reads dense random stand-ins for what other regions compute, as published unfused numbers were taken.

Nothing sparse goes from region to region then, and the model's outputs mean nothing: each region is checked by itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fuseflow.compiler.check import Check, check
from fuseflow.compiler.regions import CompiledRegion
from fuseflow.einsum.interpret import LARGEST, evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.sparse import operand
from fuseflow.tensors import Tensor, pack

ZEROS = 0.6
"""The share of a stand-in's elements that are zero, stored like the others."""


def stand_in(name: str, computed: Tensor, seed: int) -> Tensor:
    """Random elements in the place of those that were computed, in the same format; they follow from the name and the seed."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    numbers = rng.integers(1, 255, computed.shape) if computed.values.dtype.kind == "i" else 1 - rng.random(computed.shape)
    numbers = np.where(rng.random(computed.shape) < ZEROS, 0, numbers)
    return pack(numbers.astype(computed.values.dtype), computed.format, computed.fill)


def check_region(
    program: Program, region: CompiledRegion, memory: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
) -> Check | None:
    """What a region wrote, against the dense interpreter on what it read. None for a copy: its readers are checked."""
    einsums = tuple(e for e in program.einsums if e.name in region.einsums)
    if not einsums:
        return None
    made = {e.name for e in einsums}
    read = dict.fromkeys(name for e in einsums for name in e.operands if name not in made)
    part = Program(tuple(program.declared[name] for name in read), einsums, tuple(n for n in outputs if n in made))
    expected = evaluate(part, {name: operand(memory[name], LARGEST) for name in read})
    return check(outputs, {name: expected[name] for name in part.outputs}, "")


def worst(checks: Sequence[Check]) -> Check:
    """The checks of all regions as one."""
    if not checks:
        return Check("dense interpreter, each region by itself", True, 0.0)
    found = max(checks, key=lambda one: (not one.passed, one.max_rel_error))
    masked = sum(one.masked_rows for one in checks)
    return replace(found, reference="dense interpreter, each region by itself", masked_rows=masked)
