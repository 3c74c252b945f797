"""The reader of Linalg modules that a user wrote."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.frontend.linalg import module_io
from fuseflow.frontend.linalg.roundtrip_reader import read_module
from fuseflow.frontend.linalg.sparse_encodings import screen_encodings
from fuseflow.frontend.linalg.to_einsum import extract_program


def read_mlir(text: str, file: str = "<text>") -> Program:
    """Read a Linalg module with sparse encodings as an Einsum program, without loading PyTorch. Errors call the text `file`.

    The name of an argument is its attribute `samml.name`, or else the name of its location, or else arg0, arg1, and so on. Raise
    `FrontendError` for a text that is not a module or has no Einsum form.
    """
    screen_encodings(text, file)
    module = module_io.parse_module(text, file)
    if module_io.PROGRAM in module.operation.attributes:
        return read_module(module, file)
    program = extract_program(module, file)
    verify(program)
    return program
