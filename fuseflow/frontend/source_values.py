"""Other values for the inputs of a source: NumPy, scipy and PyTorch arrays, and packed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FuseFlowError, UsageError, did_you_mean
from fuseflow.frontend.imported_program import Source
from fuseflow.frontend.linalg.unit_dimensions import squeeze_shape
from fuseflow.tensors import Format, Tensor, repack
from fuseflow.tensors.array_files import pack_declared
from fuseflow.tensors.pack import is_scipy, is_torch

if TYPE_CHECKING:
    import torch


def packed_values(source: Source, values: Mapping[str, Any], stored: Mapping[str, TensorType]) -> dict[str, Tensor]:
    """Return values for inputs of the program of a source, by name, as packed tensors. `stored` declares the inputs in the formats in which
    the compiled program stores them; a packed tensor may be in this format or in the declared one.

    Copies of an input in another format get its values. No memory is shared with arrays; packed tensors are taken as they are. Raise
    `UsageError` for a name that is no input, for values of another shape, type or format, and for inputs whose values decided how the
    program was rewritten: parts of a divided operand, and all inputs of a program without what it does not need.
    """
    if source.simplified is not None:
        raise UsageError(
            f"`{source.name}` was simplified by the values of its inputs, so it takes no others",
            hint="compile it without `propagate`",
        )
    original = source.original or source
    inputs = {t.name: t for t in original.program.inputs if t.name not in source.selections}
    declared = {t.name: t for t in source.program.inputs if t.name in inputs}
    for name in values:
        if name not in inputs:
            raise UsageError(f"the program has no input `{name}`", hint=did_you_mean(name, declared))
        if name not in declared:
            message = f"the input `{name}` is divided into parts that were chosen by its values, so it takes no others"
            raise UsageError(message, hint="leave it out of the plan")
    packed = {name: _packed(value, declared[name], stored.get(name)) for name, value in values.items()}
    for copy, name in source.copies.items():
        format = source.program.declared[copy].format
        if name in packed and format is not None:
            packed[copy] = repack(packed[name], format)
    return packed


def holding(source: Source, tensors: Mapping[str, Tensor]) -> Source:
    """Return a source with other packed tensors for some inputs. The dense interpreter is its reference, since PyTorch computed the outputs
    of the former values."""
    return replace(
        source,
        tensors={**source.tensors, **tensors},
        expected=None,
        intermediates=dict,
        masks={name: mask for name, mask in source.masks.items() if name not in tensors},
        original=None if source.original is None else holding(source.original, tensors),
    )


def _packed(value: Any, declared: TensorType, stored: TensorType | None) -> Tensor:
    """Pack a value as it is declared, or take a tensor that is packed so, or as it is stored. An error names the input."""
    declared = replace(declared, format=declared.format or Format.dense(len(declared.shape)))
    try:
        if isinstance(value, Tensor):
            _check_packed(value, declared, declared if stored is None or stored.format is None else stored)
            return replace(value, fill=declared.fill)  # which a dense tensor does not read
        if is_torch(value):
            return packed_torch(value, declared)
        array = value if is_scipy(value) else _without_units(np.asarray(value), declared.shape)
        if array.dtype.kind not in "buif":
            raise UsageError(f"elements of type `{array.dtype}`", hint="pass integers or real numbers")
        return pack_declared(array, declared)
    except FuseFlowError as error:
        raise UsageError(f"input `{declared.name}`: {error.message}", hint=error.hint) from error


def _check_packed(tensor: Tensor, declared: TensorType, stored: TensorType) -> None:
    """Raise `UsageError` unless a tensor is packed in single elements, in one of two formats of the same input."""
    if tensor.tile:
        raise UsageError("a tensor of tiles", hint="pass single elements, which are stored in the blocks of the program")
    formats = dict.fromkeys(str(type.format) for type in (stored, declared))
    fills = [f"{fill:g}" for fill in (declared.fill, *([tensor.fill] if tensor.format.all_dense else []))]
    for what, actual, expected in (
        ("shape", list(tensor.shape), [list(declared.shape)]),
        ("type", tensor.element_type.name, [declared.dtype]),
        ("format", str(tensor.format), list(formats)),
        ("implicit value", f"{tensor.fill:g}", fills),
    ):
        if actual not in expected:
            raise UsageError(
                f"a packed tensor of {what} {actual}; the program has {' or '.join(map(str, expected))}",
                hint="`fuseflow.tensors.repack`, or pass an array" if what == "format" else "",
            )


def _without_units(array: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return an array without its dimensions of extent 1, which the program of a model does not have, if it has this shape then."""
    return array.reshape(shape) if array.shape != shape and squeeze_shape(array.shape) == shape else array


def packed_torch(tensor: torch.Tensor, declared: TensorType) -> Tensor:
    """Pack a copy of a PyTorch tensor. Entries of a sparse layout stay stored, even zeros. Raise `UsageError` for another shape or type."""
    from fuseflow.frontend.torch_tensors import TORCH_DTYPES, from_torch  # loads PyTorch, which is loaded here

    shape = tuple(tensor.shape)
    if shape != declared.shape and squeeze_shape(shape) != declared.shape:
        raise UsageError(f"shape {list(shape)}, the program has {list(declared.shape)}")
    if TORCH_DTYPES.get(tensor.dtype) != declared.dtype:
        names = [str(dtype) for dtype, name in TORCH_DTYPES.items() if name == declared.dtype]
        raise UsageError(
            f"elements of type `{tensor.dtype}`, the program has {declared.dtype}",
            hint=f"`.to({names[0]})`" if names else "pass a NumPy array, which is rounded",
        )
    format = declared.format or Format.dense(len(declared.shape))
    return from_torch(tensor.detach().clone(), replace(declared, format=format))
