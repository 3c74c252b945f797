"""Linalg modules from a user's file."""

from __future__ import annotations

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.frontend import mlir
from fuseflow.frontend.linalg_to_einsum import extract
from fuseflow.frontend.sparse_encodings import screen_encodings


def read(text: str, file: str) -> Program:
    screen_encodings(text, file)
    module = mlir.parse(text, file)
    mlir.run(module, mlir.GENERALIZE, f"reading {file}", file)
    program = extract(module, file)
    verify(program)
    return program
