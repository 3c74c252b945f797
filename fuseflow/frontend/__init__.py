"""The front end: PyTorch models, MLIR files and data sets to Einsum programs and packed tensors.

PyTorch and torch-mlir take seconds to load, so this package imports them only when one of its functions is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fuseflow.einsum.nodes import Program
from fuseflow.frontend.data import Data, load_data
from fuseflow.frontend.model_files import LoadedModel, load_model
from fuseflow.frontend.model_import import ModelImport
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    import torch

__all__ = ["Data", "LoadedModel", "ModelImport", "import_model", "load_data", "load_model", "read_mlir", "to_torch"]


def import_model(
    module: torch.nn.Module, inputs: tuple[Any, ...], formats: Mapping[str, str] | None = None, name: str = "model"
) -> ModelImport:
    """Import a PyTorch module, called with `inputs` (tensors: dense, CSR, CSC, COO, BSR or BSC), as a program called `name`.

    `formats` gives a storage format to tensors that PyTorch holds dense, by their name in the model (`{"attn.mask": "csr"}`).
    Raises `FrontendError` with the operator, module path and line of what has no Einsum form.
    """
    from fuseflow.frontend import importer

    return importer.import_model(module, inputs, formats or {}, name)


def to_torch(tensor: Tensor) -> torch.Tensor:
    """A packed tensor as a PyTorch tensor with the same stored entries: CSR, CSC, COO or dense, as its format says."""
    from fuseflow.frontend import torch_tensors

    return torch_tensors.to_torch(tensor)


def read_mlir(text: str, file: str = "<text>") -> Program:
    """The program of a Linalg module with sparse encodings; `file` is its name in errors. Does not need PyTorch.

    Arguments are called what their attribute `samml.name` says, or else the name of their location, or else arg0, arg1, ...
    Raises `FrontendError`.
    """
    from fuseflow.frontend import linalg_reader

    return linalg_reader.read_program(text, file)
