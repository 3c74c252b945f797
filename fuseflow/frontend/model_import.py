"""What the front end hands to the rest of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.tensors import Tensor


class ReferenceOutputs(Mapping[str, npt.NDArray[np.generic]]):
    """The outputs of the model by name, computed when the first is asked for: who only compiles does not wait for PyTorch."""

    __slots__ = ("_compute", "_names", "_values")

    def __init__(self, names: Sequence[str], compute: Callable[[], Sequence[npt.NDArray[np.generic]]]) -> None:
        self._names, self._compute = tuple(names), compute
        self._values: dict[str, npt.NDArray[np.generic]] = {}

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        if name in self._names and not self._values:
            self._values = dict(zip(self._names, self._compute(), strict=True))
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, slots=True)
class ModelImport:
    """A model as Einsums, with its numbers beside it.

    A dimension of extent 1 holds no information and is dropped everywhere: an input of shape (1, n, d) is declared, packed and
    expected as (n, d).
    """

    program: Program
    tensors: Mapping[str, Tensor]
    """Every declared input of the program (weights, buffers, arguments), packed in its declared format. Dense ones share the memory of
    the module's: whoever changes its weights afterwards imports it again."""
    expected: ReferenceOutputs
    """What PyTorch computes eagerly, by the name of the program output."""
    mlir: str
    """Linalg on tensors with sparse encodings, argument names and locations; `read_mlir` reads it back."""
    notices: tuple[str, ...] = ()
    """What was done that the model does not say, for the user to know."""
