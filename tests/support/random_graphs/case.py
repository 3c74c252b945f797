"""A case: a graph, the tensors that it reads and a machine. `describe` turns one that failed into a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import show
from fuseflow.sim import Machine
from fuseflow.tensors import Tensor


@dataclass(frozen=True, repr=False)
class Case:
    """What to simulate. `graph` passes `verify`, and runs on `tensors` without an error other than a deadlock."""

    graph: Graph
    tensors: dict[str, Tensor]
    machine: Machine

    def __repr__(self) -> str:
        return "\n" + describe(self)


HEADER = """from numpy import array, inf, nan

from fuseflow.samml.text import parse
from fuseflow.sim import Machine
from fuseflow.tensors import Format, from_coordinates
"""


def describe(case: Case) -> str:
    """Python text that defines GRAPH, TENSORS and MACHINE: paste it into a test."""
    tensors = "".join(f'    "{name}": {_tensor(tensor)},\n' for name, tensor in case.tensors.items())
    machine = settings(case.machine)
    return f'{HEADER}\nGRAPH = parse("""\n{show(case.graph)}""")\nTENSORS = {{\n{tensors}}}\nMACHINE = Machine.model_validate({machine})\n'


def settings(machine: Machine) -> dict[str, Any]:
    """Those of a machine that are not the usual ones."""
    changed = machine.model_dump(exclude_defaults=True)
    return changed | ({"memory": machine.memory.model_dump()} if "memory" in changed else {})


def _tensor(tensor: Tensor) -> str:
    """The call that packs it again: every stored entry, also those that equal the implicit value."""
    where, values = tensor.coordinates().tolist(), f'array({tensor.values.reshape(-1).tolist()}, "{tensor.dtype}")'
    values += f".reshape{(-1, *tensor.tile)}" if tensor.tile else ""
    format = f'Format.parse("{tensor.format}", {tensor.format.rank})'
    return f"from_coordinates({tensor.shape}, array({where}, int), {values}, {format}, {tensor.fill})"
