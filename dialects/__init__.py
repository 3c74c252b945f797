"""The MLIR dialects of the Einsum program, the fusion table and the SAMML graph, with the code that reads and writes their modules.

Each dialect is declared in IRDL text beside this file: `einsum.irdl.mlir`, `table.irdl.mlir`, and `samml.irdl.mlir`. The text is the only
declaration of the dialect. `torch-mlir-opt --irdl-file=FILE` and `torch_mlir.dialects.irdl.load_dialects` accept it too. The page
docs/reference/dialects.md lists the operations.

The module `attributes` makes attributes, `module` reads modules, `text_screen` refuses texts that MLIR's parser should not see, and
`listing` makes the list of operations. All of them except `text_screen` load torch-mlir, which takes time, so this package imports none
of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

DIALECTS: Final = ("einsum", "table", "samml")


def declaration(dialect: str) -> Path:
    """Return the path of the file that declares a dialect.

    >>> declaration("samml").name
    'samml.irdl.mlir'
    """
    return Path(__file__).parent / f"{dialect}.irdl.mlir"
