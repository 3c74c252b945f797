"""What the writers of a tensor received, whichever simulator ran them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = "array[Any] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]]"
"""Numbers in the order of their writing, of any width that holds them; `np.asarray` reads every kind."""


@dataclass(slots=True)
class WriterStream:
    """Of each level its coordinates and, at the end of each fiber, how many so far (a 0 before the first); then the values, of tiles row
    by row."""

    crd: dict[int, Column] = field(default_factory=dict)
    pos: dict[int, Column] = field(default_factory=dict)
    values: Column = field(default_factory=lambda: array("d"))
