"""The streams that the writers of a tensor received, whichever simulator ran them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Column: TypeAlias = "array[Any] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]]"
"""A column holds numbers in the order of their writing, of any width that is large enough. `np.asarray` reads every kind of column."""


@dataclass(slots=True)
class WriterStream:
    """The streams written to one tensor. `crd` holds the coordinates of each level. `pos` holds, at the end of each fiber of a level,
    the number of coordinates so far, after a 0 before the first. `values` holds the values, with tiles row by row."""

    crd: dict[int, Column] = field(default_factory=dict)
    pos: dict[int, Column] = field(default_factory=dict)
    values: Column = field(default_factory=lambda: array("d"))
