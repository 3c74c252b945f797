"""The reader of Linalg modules that a user wrote."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.frontend import linalg_modules
from fuseflow.frontend.linalg_to_einsum import extract_program
from fuseflow.frontend.named_linalg import read_module
from fuseflow.frontend.sparse_encodings import screen_encodings


def read_program(text: str, file: str) -> Program:
    """Read a Linalg module as an Einsum program; see `fuseflow.frontend.read_mlir`."""
    screen_encodings(text, file)
    module = linalg_modules.parse_module(text, file)
    if linalg_modules.PROGRAM in module.operation.attributes:
        return read_module(module, file)
    program = extract_program(module, file)
    verify(program)
    return program
