"""The phases of a training step, by the names of its Einsums: forward, loss, backward and update.

>>> phases(["relu", "layer2.matmul", "grad.layer2.matmul", "next.layer2.weight"])
('forward', 'backward', 'update')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fuseflow.einsum.carried import NEXT

LOSS: Final = "loss"
"""The output that is the loss. The names of Einsums on the way from the output of the model to it begin so, too."""
GRADIENT: Final = "grad."
"""The beginning of the name of an Einsum or an output that is a gradient."""
UPDATE: Final = "update."
"""The beginning of the name of an Einsum on the way from a gradient to a new value."""
PHASES: Final = ("forward", "loss", "backward", "update")
"""The phases, in the order in which they begin."""


def phase(einsum: str) -> str:
    """Return the phase of an Einsum of a training step. A copy that is computed again belongs to that of the Einsum that it repeats."""
    if einsum == LOSS or einsum.startswith(f"{LOSS}."):
        return "loss"
    if einsum.startswith(GRADIENT):
        return "backward"
    return "update" if einsum.startswith((UPDATE, NEXT)) else "forward"


def phases(einsums: Iterable[str]) -> tuple[str, ...]:
    """Return the phases of some Einsums, such as those of a region, each once and in the order in which they begin."""
    found = {phase(name) for name in einsums}
    return tuple(name for name in PHASES if name in found)
