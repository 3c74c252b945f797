"""The phases of a training step, as its names tell them: `grad.layer1` computes gradients of `layer1`, `update.layer1.weight` a new weight,
and `next.layer1.weight` is the new value of the input `layer1.weight`."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program

GRADIENT = "grad"
"""The phase of the backward pass, with which its paths begin."""
UPDATE = "update"
"""The phase of the optimizer, with which its paths begin."""
NEXT = "next"
"""The beginning of the name of a new value of an input."""
LOSS = "loss"
"""The name of the loss, and the path of its Einsums."""


def is_training_step(program: Program) -> bool:
    """Return whether an output of a program is the new value of one of its inputs."""
    inputs = {tensor.name for tensor in program.inputs}
    return any(name.removeprefix(f"{NEXT}.") in inputs for name in program.outputs if name not in inputs)


def phase_of(path: str) -> str:
    """Return the phase of a module path of a training step; it is '' in the forward pass.

    >>> phase_of("grad.layer1.lin"), phase_of("layer1")
    ('grad', '')
    """
    first = path.partition(".")[0]
    return first if first in (GRADIENT, UPDATE) else ""
