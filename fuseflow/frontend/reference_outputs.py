"""The values that PyTorch computes for a model: its outputs, and the values on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

NodeValues: TypeAlias = Mapping[str, npt.NDArray[np.generic]]
"""The values that PyTorch computes on the way to the outputs of a model, by the names of the Einsums that compute the same.
Dimensions of extent 1 are left out."""


class ReferenceOutputs(Mapping[str, npt.NDArray[np.generic]]):
    """The outputs of the model by name. They are computed when the first of them is read, so that compiling alone does not wait for
    PyTorch."""

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
