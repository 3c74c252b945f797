"""A case: a program, the packed tensors it reads and how it is to be compiled."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.text import show
from fuseflow.schedule import Schedule
from fuseflow.tensors import Tensor


@dataclass(frozen=True, repr=False)
class Case:
    """What to compile and run. `merge`: how views are merged, `any` for what the compiler likes. `pick`: 0 for the orders that the
    compiler chooses, else which of the legal orders of which region is asked for. `deal`: 0 for no lanes, else which indices of which
    region are dealt over how many. `limits`: which limits the fast engine gets. `machine`: what the program is compiled for where a run
    takes time, a name and perhaps a model of memory, as in `rda comal_fixed`."""

    program: Program
    tensors: dict[str, Tensor]
    schedule: Schedule = field(default_factory=Schedule)
    merge: str = "any"
    pick: int = 0
    limits: int = 0
    deal: int = 0
    machine: str = "ideal"

    @property
    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        return {name: tensor.to_dense() for name, tensor in self.tensors.items()}

    def __repr__(self) -> str:
        """The program as text and its numbers: what to make a named test of."""
        numbers = "".join(f"{name} = {array.tolist()}\n" for name, array in self.arrays.items())
        settings = f"{self.schedule}merge {self.merge}, pick {self.pick}, limits {self.limits}, deal {self.deal}\n"
        settings += f"machine {self.machine}\n" if self.machine != "ideal" else ""
        return f"\n{show(self.program)}{numbers}{settings}"
