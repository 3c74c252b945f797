"""The front end: it turns PyTorch models, MLIR files and data sets into Einsum programs and packed tensors.

PyTorch and torch-mlir take seconds to load, and scipy, which data sets are read with, a good part of one. So this package imports them
only when one of its functions is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from fuseflow.einsum.nodes import Program
    from fuseflow.frontend.data import Data
    from fuseflow.frontend.imported_model import ModelImport as ModelImport
    from fuseflow.frontend.model_files import LoadedModel as LoadedModel
    from fuseflow.frontend.model_files import load_model as load_model
    from fuseflow.frontend.model_spec import TorchModel
    from fuseflow.tensors import Tensor
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)


def import_model(
    model: TorchModel,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    formats: Mapping[str, str] | None = None,
    name: str = "",
    kwargs: Mapping[str, Any] | None = None,
) -> ModelImport:
    """Import a PyTorch model as an Einsum program called `name`, or like the model itself.

    The model is a module, a function of tensors, or an exported program. It is called once, on `inputs`, which are its positional
    arguments (or its keyword arguments, if they are a mapping), and on `kwargs`. Tensors are in a dense, CSR, CSC, COO, BSR or BSC
    layout, and stand alone or in lists, tuples and dictionaries. An exported program may keep its own example inputs.

    `formats` gives a storage format to tensors that PyTorch holds dense, by their name in the model (`{"attn.mask": "csr"}`).
    Raise `FrontendError` with the operator, the module path and the line of an operation that has no Einsum form.
    """
    from fuseflow.frontend import importer
    from fuseflow.frontend.model_call import model_call, model_name

    call = model_call(model, inputs, kwargs)
    return importer.import_model(call, formats or {}, name or model_name(model))


def load_data(spec: str, data_dir: Path | None = None, seed: int = 0) -> Data:
    """Load the data set that `spec` names; see `fuseflow.frontend.data.load_data`."""
    from fuseflow.frontend import data

    return data.load_data(spec, data_dir, seed)


def to_torch(tensor: Tensor) -> torch.Tensor:
    """Return a packed tensor as a PyTorch tensor with the same stored entries, in CSR, CSC, COO or dense layout as its format says."""
    from fuseflow.frontend import torch_tensors

    return torch_tensors.to_torch(tensor)


def read_mlir(text: str, file: str = "<text>") -> Program:
    """Read a Linalg module with sparse encodings as an Einsum program, without loading PyTorch. Errors call the text `file`.

    The name of an argument is its attribute `samml.name`, or else the name of its location, or else arg0, arg1, and so on. Raise
    `FrontendError` for a text that is not a module or has no Einsum form.
    """
    from fuseflow.frontend import linalg_reader

    return linalg_reader.read_program(text, file)
