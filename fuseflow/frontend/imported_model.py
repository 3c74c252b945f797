"""The result of importing a model, which the front end hands to the rest of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import Program
from fuseflow.tensors import Tensor

NodeValues: TypeAlias = Mapping[str, npt.NDArray[np.generic]]
"""What PyTorch computes on the way to the outputs of a model, by the names of the Einsums that compute the same. Dimensions of extent 1 are
left out."""


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


@dataclass(frozen=True, slots=True)
class ModelImport:
    """A model as an Einsum program, with its tensors and reference outputs.

    A dimension of extent 1 has no information and is dropped everywhere. For example, an input of shape (1, n, d) is declared, packed and
    expected as (n, d).
    """

    program: Program
    tensors: Mapping[str, Tensor]
    """Every declared input of the program (weights, buffers, arguments), packed in its declared format. Dense and CSR tensors may
    share the memory of the module, so a module whose weights change must be imported again."""
    expected: ReferenceOutputs
    """The outputs that PyTorch computes eagerly, by the names of the outputs of the program."""
    mlir: str
    """The Linalg form of the model, with sparse encodings, argument names and locations. `read_mlir` reads it."""
    notices: tuple[str, ...] = ()
    """Messages that tell the user what the import changed in the model."""
    masks: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """Masks of pruned weights that are stored dense or in blocks, true at entries that are not pruned."""
    constants: tuple[str, ...] = ()
    """The inputs of the program that are weights or buffers of the model, or follow from them alone."""
    exported: Callable[[], str] = str
    """A function that returns the text of the model as PyTorch exports it (`exported_text`)."""
    intermediates: Callable[[], NodeValues] = dict
    """A function that computes what PyTorch computes on the way (`node_values`)."""
