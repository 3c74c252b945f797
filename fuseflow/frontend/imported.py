"""What the front end hands to the rest of the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Imported:
    """A model as Einsums, with its numbers beside it.

    A dimension of extent 1 holds no information and is dropped everywhere: an input of shape (1, n, d) is declared, packed and
    expected as (n, d).
    """

    program: Program
    tensors: Mapping[str, Tensor]
    """Every declared input of the program (weights, buffers, arguments), packed in its declared format."""
    expected: Mapping[str, npt.NDArray[np.generic]]
    """What PyTorch computes eagerly, by the name of the program output."""
    mlir: str
    """Linalg on tensors with sparse encodings, argument names and locations; `read_mlir` reads it back."""
    notices: tuple[str, ...] = ()
    """What was done that the model does not say, for the user to know."""
