"""The arithmetic in which the nodes of a graph compute on a machine. For 32-bit floats, elements and constants of a graph must
fit such floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, assert_never, cast

import numpy as np
import numpy.typing as npt

from fuseflow.errors import MachineError, Span
from fuseflow.float32.operator_precision import Arithmetic
from fuseflow.float32.words import rounded, rounded_array
from fuseflow.machine.machine import Machine
from fuseflow.samml import nodes as n
from fuseflow.samml.node import attributes_of
from fuseflow.tensors import DTYPES, Tensor

EXACT_INTEGERS = 1 << 24
"""A 32-bit float holds every integer up to this magnitude."""


def holds(dtype: str) -> bool:
    """Return whether a 32-bit float holds every element of a type.

    >>> [name for name in DTYPES if not holds(name)]
    ['f64', 'i32', 'i64']
    """
    row = DTYPES[dtype]
    return max(map(abs, row.range)) <= EXACT_INTEGERS if row.is_integer else row.bits <= 32


def unheld_value(tensor: Tensor) -> float | None:
    """Return a value of a tensor that no 32-bit float holds, or None if such floats hold them all."""
    row = tensor.element_type
    if holds(row.name):
        return None
    arrays: tuple[npt.NDArray[Any], ...] = tensor.values, np.array([tensor.fill])
    for values in arrays:
        if row.is_integer:
            wrong = (values > EXACT_INTEGERS) | (values < -EXACT_INTEGERS)
        else:
            wrong = (rounded_array(values.astype(np.float64)) != values) & ~np.isnan(values)
        if wrong.any():
            return values[wrong][0].item()  # type: ignore[no-any-return]
    return None


def refuse_wide_floats(graph: n.Graph, machine: Machine) -> None:
    """Raise `MachineError` if the machine computes in 32-bit floats, and the graph computes a tensor of wider ones."""
    if machine.arithmetic != "f32":
        return
    for tensor in graph.tensors:
        if tensor.name not in graph.inputs and not DTYPES[tensor.dtype].is_integer and not holds(tensor.dtype):
            raise wide_type_error(f"graph `{graph.name}`: tensor `{tensor.name}`", tensor.dtype, machine)


def refuse_wide_values(graph: n.Graph, tensors: Mapping[str, Tensor], machine: Machine) -> None:
    """Raise `MachineError` if the machine computes in 32-bit floats, and a tensor that the graph reads or computes has a value
    that such floats do not hold. Tensors that `tensors` lacks are skipped."""
    if machine.arithmetic != "f32":
        return
    for decl in graph.tensors:
        if decl.name in tensors and (value := unheld_value(tensors[decl.name])) is not None:
            raise wide_value_error(f"graph `{graph.name}`: tensor `{decl.name}`", value, machine)


def wide_type_error(subject: str, dtype: str, machine: Machine, span: Span | None = None) -> MachineError:
    """Return the error for a tensor, named `subject` in the message, of a type with values that no 32-bit float holds."""
    return MachineError(
        f"{subject} has elements of {dtype}; machine `{machine.name}` computes in 32-bit floats, which do not hold them all",
        hint="declare it `f32`, or take a machine with `arithmetic: element`",
        span=span,
    )


def wide_value_error(subject: str, value: float, machine: Machine, span: Span | None = None) -> MachineError:
    """Return the error for a tensor, named `subject` in the message, with a value that no 32-bit float holds."""
    return MachineError(
        f"{subject} holds {value:,}; machine `{machine.name}` computes in 32-bit floats, which hold integers up to 2^24 in magnitude and "
        "24 binary digits of other numbers",
        hint="take a machine with `arithmetic: element`",
        span=span,
    )


def node_arithmetic(graph: n.Graph, node: n.Primitive, machine: Machine) -> Arithmetic:
    """Return the arithmetic of a node: "f64", "f32" (each step rounded to 32 bits), or "rounded" (only the result rounded)."""
    match machine.arithmetic:
        case "f64" | "f32" as everywhere:
            return everywhere
        case "element":
            return "rounded" if node.rounds and graph.computing_precision(node) == "f32" else "f64"
        case _:
            assert_never(machine.arithmetic)


def with_rounded_constants(graph: n.Graph, machine: Machine) -> n.Graph:
    """Return the graph with its constants rounded to 32-bit floats: those of nodes that compute in 32-bit floats, and the
    implicit values of tensors of such floats. A graph that needs no rounding is returned unchanged."""
    if machine.arithmetic == "f64" or all(map(_is_rounded, _constants(graph))):
        return graph
    everywhere = machine.arithmetic == "f32"
    return replace(
        graph,
        tensors=tuple(
            replace(tensor, fill=rounded(tensor.fill)) if everywhere or tensor.precision == "f32" else tensor
            for tensor in graph.tensors
        ),
        nodes=tuple(
            _with_rounded_constants(node) if everywhere or graph.computing_precision(node) == "f32" else node
            for node in graph.nodes
        ),
    )


def _constants(graph: n.Graph) -> Iterator[float]:
    """Yield the numbers of a graph: implicit values, constants of operators and attributes."""
    for tensor in graph.tensors:
        yield tensor.fill
    for node in graph.nodes:
        if isinstance(node, n.Alu):
            for operand in node.operands:
                yield operand.value
        yield from _attributes(node).values()


def _is_rounded(value: float) -> bool:
    return value != value or rounded(value) == value


def _attributes(node: n.Primitive) -> dict[str, float]:
    """Return the attributes of a node that are numbers."""
    return {name: value for name in _number_attributes(cast(Any, type(node))) if (value := getattr(node, name)) is not None}


@cache
def _number_attributes(primitive: type[n.Primitive]) -> tuple[str, ...]:
    return tuple(a.field for a in attributes_of(primitive) if a.type in ("number", "number or none"))


def _with_rounded_constants(node: n.Primitive) -> n.Primitive:
    """Return a node with the numbers of its operands and of its attributes rounded to 32-bit floats."""
    numbers: dict[str, Any] = {name: rounded(value) for name, value in _attributes(node).items()}
    if isinstance(node, n.Alu):
        numbers["operands"] = tuple(replace(operand, value=rounded(operand.value)) for operand in node.operands)
    return replace(node, **numbers) if numbers else node
