"""Training steps, and the phases that the names of their Einsums tell.

A program is a training step if one of its outputs is the new value of an input: `next.layer1.weight` is the input `layer1.weight` when the
program runs again. `grad.layer1` computes gradients of `layer1`, and `update.layer1.weight` a new weight.

>>> phases(["relu", "layer2.matmul", "grad.layer2.matmul", "next.layer2.weight"])
('forward', 'backward', 'update')
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fuseflow.einsum.nodes import Program

LOSS: Final = "loss"
"""The output that is the loss. The names of Einsums on the way from the output of the model to it begin so, too, as do their paths."""
GRADIENT: Final = "grad"
"""The beginning of the names and paths of Einsums of the backward pass, and of the names of gradients."""
UPDATE: Final = "update"
"""The beginning of the names and paths of Einsums on the way from a gradient to a new value."""
NEXT: Final = "next"
"""The beginning of the name of an output that is the input of the rest of the name in the next step."""
PHASES: Final = ("forward", "loss", "backward", "update")
"""The phases, in the order in which they begin."""


def carried_inputs(program: Program) -> dict[str, str]:
    """Return the inputs of a program that its outputs are in the next step, by the names of the outputs.

    >>> from fuseflow.einsum.parse import parse
    >>> carried_inputs(parse("tensor W[3]\\n next.W[i] = 2 * W[i]\\n next.V[i] = 3 * W[i]\\n output next.W, next.V"))
    {'next.W': 'W'}
    """
    inputs = {tensor.name for tensor in program.inputs}
    names = ((name, name.removeprefix(f"{NEXT}.")) for name in program.outputs if name.startswith(f"{NEXT}."))
    return {output: name for output, name in names if name in inputs}


def phase_of(path: str) -> str:
    """Return the phase with which a module path of a training step begins; it is '' in the forward pass.

    >>> phase_of("grad.layer1.lin"), phase_of("layer1")
    ('grad', '')
    """
    first = path.partition(".")[0]
    return first if first in (GRADIENT, UPDATE) else ""


def phase(einsum: str) -> str:
    """Return the phase of an Einsum of a training step. A copy that is computed again belongs to that of the Einsum that it repeats."""
    match einsum.split(".", 1):
        case [first] if first == LOSS:
            return "loss"
        case [first, _]:
            return {LOSS: "loss", GRADIENT: "backward", UPDATE: "update", NEXT: "update"}.get(first, "forward")
    return "forward"


def phases(einsums: Iterable[str]) -> tuple[str, ...]:
    """Return the phases of some Einsums, such as those of a region, each once and in the order in which they begin."""
    present = {phase(name) for name in einsums}
    return tuple(name for name in PHASES if name in present)
