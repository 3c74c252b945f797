"""Which element types of a program a machine can compute with."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.sim import Machine
from fuseflow.sim.arithmetic import holds, wide_type_error


def refuse_wide_tensors(program: Program, machine: Machine) -> None:
    """Raise `MachineError`, with the place of the tensor, if the machine computes in 32-bit floats, and these do not hold every element of
    some tensor of a program with inferred types."""
    if machine.arithmetic == "f64":
        return
    locations = {einsum.name: einsum.location.span for einsum in program.einsums}
    for tensor in program.tensors:
        if not holds(tensor.dtype):
            span = tensor.span or locations.get(tensor.name)
            raise wide_type_error(f"tensor `{tensor.name}`", tensor.dtype, machine, span)
