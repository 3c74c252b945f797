"""Declarations of integers on the way to results that are declared as integers.

The result of a comparison is a float unless it is declared, although its values are 0 and 1. Where a model returns a part of it as
integers, `(x > 0).long()[:, 2:4]`, the part is declared, and it takes elements of a float.
"""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace

from fuseflow.einsum.format_inference import Scope, is_integral, result_dtype
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.verify import shapes_and_extents
from fuseflow.tensors.dtypes import DTYPES


def with_integers(program: Program) -> Program:
    """Return a program that declares a result as integers if a result that is declared as integers needs it, and if all of its values
    are integers."""
    if not any(tensor.name in program.defined and DTYPES[tensor.dtype].is_integer for tensor in program.tensors):
        return program
    shapes, extents = shapes_and_extents(program)
    types, whole, wanted = dict(program.declared), dict[str, TensorType](), set[str]()
    for einsum in program.einsums:
        name, declared = einsum.name, program.declared.get(einsum.name)
        scope, wider = (Scope(known, {}, extents[name]) for known in (types, ChainMap(whole, types)))
        if declared is None:
            types[name] = TensorType(name, shapes[name], dtype=result_dtype(einsum, scope))
            if not DTYPES[types[name].dtype].is_integer and is_integral(einsum.body, wider):
                whole[name] = replace(types[name], dtype="i64")
        elif DTYPES[declared.dtype].is_integer and not is_integral(einsum.body, scope) and is_integral(einsum.body, wider):
            wanted.update(einsum.operands)
    for einsum in reversed(program.einsums):
        if einsum.name in wanted & set(whole) and not is_integral(einsum.body, Scope(types, {}, extents[einsum.name])):
            wanted.update(einsum.operands)
    return replace(program, tensors=(*program.tensors, *(whole[name] for name in whole if name in wanted)))
