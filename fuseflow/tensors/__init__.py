"""Tensors stored as fibertrees: their level formats, packing, unpacking and sizes in bytes."""

from fuseflow.tensors.dtypes import DTYPES
from fuseflow.tensors.format import Format
from fuseflow.tensors.pack import from_coordinates, pack, repack
from fuseflow.tensors.tensor import Tensor

__all__ = ["DTYPES", "Format", "Tensor", "from_coordinates", "pack", "repack"]
