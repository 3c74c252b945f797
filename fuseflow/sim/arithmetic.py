"""What arithmetic in 32-bit floats asks of a graph: elements that such floats hold, and constants that are such floats."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from fuseflow.errors import MachineError, Span
from fuseflow.float32.words import rounded
from fuseflow.samml import nodes as n
from fuseflow.sim.machine.machine import Machine
from fuseflow.tensors import DTYPES

DIGITS = 24
"""The binary digits of a 32-bit float."""


def holds(dtype: str) -> bool:
    """Return whether a 32-bit float holds every element of a type.

    >>> [name for name in DTYPES if not holds(name)]
    ['f64', 'i32', 'i64']
    """
    row = DTYPES[dtype]
    return max(map(abs, row.range)) <= 1 << DIGITS if row.is_integer else row.bits <= 32


def refuse_wide_types(graph: n.Graph, machine: Machine) -> None:
    """Raise `MachineError` if the machine computes in 32-bit floats, and these do not hold every element of some tensor of the graph."""
    if machine.arithmetic == "f64":
        return
    for tensor in graph.tensors:
        if not holds(tensor.dtype):
            raise wide_type_error(f"graph `{graph.name}`: tensor `{tensor.name}`", tensor.dtype, machine)


def wide_type_error(subject: str, dtype: str, machine: Machine, span: Span | None = None) -> MachineError:
    """Return the error of a tensor, called `subject`, whose elements 32-bit floats do not hold."""
    return MachineError(
        f"{subject} has elements of {dtype}; machine `{machine.name}` computes in 32-bit floats, which do not hold them all",
        hint="declare it `f32`, or take a machine with `arithmetic: f64`",
        span=span,
    )


def with_rounded_constants(graph: n.Graph) -> n.Graph:
    """Return the graph with its constants and implicit values as 32-bit floats, each the nearest one."""
    return replace(
        graph,
        tensors=tuple(replace(tensor, fill=rounded(tensor.fill)) for tensor in graph.tensors),
        nodes=tuple(map(_with_rounded_constants, graph.nodes)),
    )


def _with_rounded_constants(node: n.Primitive) -> n.Primitive:
    """Return a node whose numbers are 32-bit floats: those of its operands, and every attribute that is a float."""
    numbers: dict[str, Any] = {f.name: rounded(value) for f in fields(node) if isinstance(value := getattr(node, f.name), float)}
    if isinstance(node, n.Alu):
        numbers["operands"] = tuple(replace(operand, value=rounded(operand.value)) for operand in node.operands)
    return replace(node, **numbers) if numbers else node
