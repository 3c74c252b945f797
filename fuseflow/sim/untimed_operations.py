"""The operations for which a machine has no times: a graph with one can neither run on the machine nor be estimated for it."""

from __future__ import annotations

from fuseflow.errors import MachineError
from fuseflow.machine.machine import Machine
from fuseflow.samml.nodes import Graph, WriteLevel
from fuseflow.tensors import DTYPES


def refuse_untimed(graph: Graph, machine: Machine) -> None:
    """Raise `MachineError` for a graph with element types, primitives or ports for which the machine has no times."""
    if machine.rules != "comal":
        return
    if graph.turns:
        name, turn = graph.turns[0]
        raise MachineError(
            f"graph `{graph.name}`: `{name}` shares a port with {turn.of - 1} other nodes; machine `{machine.name}` knows no ports",
            hint="take a machine with `rules: dataflow`, or an array with a port for each stream (`ports: {share: 1}`)",
        )
    for tensor in graph.tensors:
        if DTYPES[tensor.dtype].narrow:
            raise MachineError(
                f"graph `{graph.name}`: tensor `{tensor.name}` has elements of {tensor.dtype}; machine `{machine.name}` has no times for "
                "that, its units work on 32 bits",
                hint="take a machine with `rules: dataflow`, or declare the tensor `f32`",
            )
    for node in graph.nodes:
        beyond = node.beyond_comal
        if isinstance(node, WriteLevel) and graph.declared[node.tensor].room(node.level) is not None:
            beyond = f"fills up the fibers of level {node.level} of `{node.tensor}`"
        if beyond:
            raise MachineError(
                f"graph `{graph.name}`: `{node.name}` {beyond}; machine `{machine.name}` has no times for that",
                hint="take a machine with `rules: dataflow`",
            )
