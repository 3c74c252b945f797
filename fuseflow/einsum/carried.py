"""Outputs of a program that are its inputs when it runs again: the output `next.W` is the input `W` in the next step."""

from __future__ import annotations

from typing import Final

from fuseflow.einsum.nodes import Program

NEXT: Final = "next."
"""The beginning of the name of an output that is the input of the rest of the name in the next step."""


def carried_inputs(program: Program) -> dict[str, str]:
    """Return the inputs of a program that its outputs are in the next step, by the names of the outputs.

    >>> from fuseflow.einsum.parse import parse
    >>> carried_inputs(parse("tensor W[3]\\n next.W[i] = 2 * W[i]\\n next.V[i] = 3 * W[i]\\n output next.W, next.V"))
    {'next.W': 'W'}
    """
    inputs = {tensor.name for tensor in program.inputs}
    names = ((name, name.removeprefix(NEXT)) for name in program.outputs if name.startswith(NEXT))
    return {output: name for output, name in names if name in inputs}
