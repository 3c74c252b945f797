"""The narrow mode of the generators: a case that was drawn, with some of its tensors in narrow element types.

What a seed draws stays as it is without this mode. Numbers of inputs are made such that their type can hold them. A result keeps its type
where rounding errors would decide what it is rounded to, and an integer type where some of it is not a number.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import torch_oracle
from engines import on_reference
from random_graphs import Case as GraphCase
from random_programs import Case as ProgramCase

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import FuseFlowError, SimulationError
from fuseflow.samml.nodes import TensorDecl
from fuseflow.tensors import DTYPES, Tensor

SHARE = 0.6
"""Of the tensors, those that are tried in a narrow type."""
NARROW = tuple(name for name, row in DTYPES.items() if row.narrow and row.has_zero)
"""Without the powers of 2: a block of them stores a 0 beside each, which they do not have."""
SURE = 1e-11


def in_program(case: ProgramCase) -> ProgramCase:
    """The case with some inputs and results in narrow types, where the program then still has one meaning."""
    rng = random.Random(zlib.crc32(f"narrow {case!r}".encode()))
    for name, tensor in case.tensors.items():
        trial = _with_input(case, name, _held(tensor, rng.choice(NARROW))) if rng.random() < SHARE else case
        case = trial if _is_fair(trial) else case
    shapes = {t.name: t.shape for t in infer(case.program).tensors}
    for einsum in case.program.einsums:
        if rng.random() < SHARE:
            declared = case.program.declared.get(einsum.name, TensorType(einsum.name, shapes[einsum.name]))
            trial = replace(case, program=_declaring(case.program, replace(declared, dtype=rng.choice(NARROW))))
            case = trial if _is_fair(trial) else case
    return replace(case, program=_wide(case.program))


def in_graph(case: GraphCase, seed: int) -> GraphCase:
    """The case with some inputs and results in narrow types, where it still runs to its end."""
    rng = random.Random(f"narrow {seed}")
    for decl in case.graph.tensors:
        if rng.random() >= SHARE:
            continue
        dtype = rng.choice(NARROW)
        fill = DTYPES[dtype].nearest(decl.fill)
        if fill != decl.fill:
            continue
        tensors = dict(case.tensors)
        if decl.name in tensors:
            held = _held(tensors[decl.name], dtype)
            if held is None:
                continue
            tensors[decl.name] = held
        trial = replace(case, graph=_with_decl(case, replace(decl, dtype=dtype)), tensors=tensors)
        case = trial if decl.name in tensors or not isinstance(on_reference(trial), SimulationError) else case
    return case


def _with_decl(case: GraphCase, decl: TensorDecl):
    return replace(case.graph, tensors=tuple(decl if t.name == decl.name else t for t in case.graph.tensors))


def _held(tensor: Tensor, dtype: str) -> Tensor | None:
    """The tensor with numbers that a narrow type holds, or None if its implicit value is no such number or some value is not a number."""
    row = DTYPES[dtype]
    if row.nearest(tensor.fill) != tensor.fill or row.unholdable(tensor.values).any():
        return None
    return replace(tensor, values=row.hold(tensor.values), type=row)


def _with_input(case: ProgramCase, name: str, tensor: Tensor | None) -> ProgramCase:
    if tensor is None or name not in case.program.declared:
        return case
    declared = replace(case.program.declared[name], dtype=tensor.element_type.name)
    return replace(case, program=_declaring(case.program, declared), tensors={**case.tensors, name: tensor})


def _declaring(program: Program, declared: TensorType) -> Program:
    """The program with this declaration."""
    if declared.name not in program.declared:
        return replace(program, tensors=(*program.tensors, declared))
    return replace(program, tensors=tuple(declared if t.name == declared.name else t for t in program.tensors))


def _wide(program: Program) -> Program:
    """The program with results in 64 bits that would have 32, so that all levels round alike."""
    while single := [t for t in infer(program).tensors if t.dtype == "f32"]:
        declared = program.declared.get(single[0].name, TensorType(single[0].name, single[0].shape))
        program = _declaring(program, replace(declared, dtype="f64"))
    return program


def _is_fair(case: ProgramCase) -> bool:
    """Whether the program has a meaning, every entry of it is determined, and integers are numbers."""
    try:
        program = infer(_wide(case.program))
    except FuseFlowError:
        return False
    for name, evaluated in torch_oracle.evaluate(program, case.arrays).items():
        values, error = evaluated.value.values, evaluated.value.error
        finite = values[values.isfinite()].abs()
        scale = max(1.0, float(finite.max()) if finite.numel() else 0.0)
        row = DTYPES[program.declared[name].dtype]
        if bool((error > SURE * scale).any()) or (row.narrow and row.unholdable(values.numpy()).any()):
            return False
    return True
