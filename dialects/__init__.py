"""The MLIR dialects of the Einsum program, the fusion table and the SAMML graph, and what reads and writes modules of them.

Each dialect is declared in IRDL text beside this file: `einsum.irdl.mlir`, `table.irdl.mlir`, `samml.irdl.mlir`. The text is its only
declaration; `torch-mlir-opt --irdl-file=FILE` and `torch_mlir.dialects.irdl.load_dialects` take it too. docs/dialects.md lists the
operations.

`attributes` makes attributes, `module` reads modules, `screen` refuses texts that MLIR's parser should not see, and `listing` makes the
list of operations. All of them but `screen` need torch-mlir and never torch, so none of them is imported here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

DIALECTS: Final = ("einsum", "table", "samml")


def declaration(dialect: str) -> Path:
    """The file that declares a dialect.

    >>> declaration("samml").name
    'samml.irdl.mlir'
    """
    return Path(__file__).parent / f"{dialect}.irdl.mlir"
