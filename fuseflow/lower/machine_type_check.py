"""The check that a machine can compute with the types of the tensors of a program."""

from __future__ import annotations

from collections.abc import Mapping

from fuseflow.einsum.integer_range import rounded_integers
from fuseflow.einsum.interpret import operands_of
from fuseflow.einsum.nodes import Program, TensorType
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.errors import MachineError, Span
from fuseflow.machine.machine import Machine
from fuseflow.sim.precision import EXACT_INTEGERS, holds, unheld_value, wide_type_error, wide_value_error
from fuseflow.tensors import DTYPES, Tensor


def refuse_wide_tensors(program: Program, tensors: Mapping[str, Tensor], machine: Machine) -> None:
    """Raise `MachineError`, with the location of the tensor, if the machine computes in 32-bit floats, and these do not hold the
    values that a program with inferred types reads and computes.

    Inputs are judged by their values. An integer result is held if all integers that it is computed from are, also if some of
    them cancel. A result of 64-bit floats is not held, nor is a wide input without values.
    """
    if machine.arithmetic != "f32":
        return
    wide = [tensor for tensor in program.tensors if not holds(tensor.dtype)]
    for tensor in wide:
        is_integer_result = tensor.name in program.defined and DTYPES[tensor.dtype].is_integer
        if not is_integer_result and tensor.name not in tensors:
            raise wide_type_error(f"tensor `{tensor.name}`", tensor.dtype, machine, _span(program, tensor))
        if tensor.name in tensors and (value := unheld_value(tensors[tensor.name])) is not None:
            raise wide_value_error(f"tensor `{tensor.name}`", value, machine, _span(program, tensor))

    def array_of(name: str) -> Operand | None:
        return operands_of(program, {name: tensors[name]})[name] if name in tensors else None

    for name, largest in rounded_integers(program, array_of, EXACT_INTEGERS).items():
        raise MachineError(
            f"`{name}` computes with integers that may reach {largest:,.0f}; machine `{machine.name}` computes in 32-bit floats, which "
            "hold integers up to 2^24 in magnitude",
            hint="scale the inputs down, declare them `f32` and accept the rounding, or take a machine with `arithmetic: element`",
            span=_span(program, program.declared[name]),
        )


def _span(program: Program, tensor: TensorType) -> Span | None:
    """Return the location in the program where a tensor is declared or computed, None if it has none."""
    return tensor.span or (program.defined[tensor.name].location.span if tensor.name in program.defined else None)
