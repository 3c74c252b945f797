"""The front end: it turns PyTorch models, MLIR files and data sets into Einsum programs and packed tensors.

PyTorch and torch-mlir take seconds to load, and scipy, which data sets are read with, a good part of one. So this package imports them
only when one of its names is used.
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.frontend.data import load_data as load_data
    from fuseflow.frontend.importer import import_model as import_model
    from fuseflow.frontend.linalg.reader import read_mlir as read_mlir
    from fuseflow.frontend.model_files import LoadedModel as LoadedModel
    from fuseflow.frontend.model_files import load_model as load_model
    from fuseflow.frontend.torch_tensors import to_torch as to_torch
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
