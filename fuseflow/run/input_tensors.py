"""The inputs that a user gives a compiled program, as the program stores them."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.errors import OverfullError, UsageError
from fuseflow.frontend.imported_program import Source
from fuseflow.tensors import Tensor, repack


def user_inputs(source: Source, program: Program) -> list[TensorType]:
    """Return the inputs of a compiled program without those that the compiler added, in the formats in which they are stored."""
    return [t for t in program.inputs if t.name in source.program.declared]


def inputs_of(source: Source, types: Iterable[TensorType]) -> dict[str, Tensor]:
    """Return inputs of a source in the formats of `types`. Raise `UsageError` if one has no data."""
    tensors = {}
    for declared in types:
        tensor = source.tensors.get(declared.name)
        if tensor is None:
            raise UsageError(f"input `{declared.name}` of `{source.name}` has no data", hint="pass `--tensors FILE.yaml`")
        fits = declared.format is None or tensor.format == declared.format
        with OverfullError.naming(declared.name):
            tensors[declared.name] = tensor if fits or declared.format is None else repack(tensor, declared.format)
    return tensors
