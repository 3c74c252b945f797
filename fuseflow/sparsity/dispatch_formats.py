"""How formats of tensors are written in registrations and calls, and the class of the storage, by which look-ups compare them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import torch

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.spec import OutputFormat

Format: TypeAlias = type | Layout | None
"""A storage class, the class of a layout, a layout, or `torch.Tensor` for tensors that are not wrapped. None: no tensor."""


class TensorFormat(NamedTuple):
    """How a result becomes sparse: the operator applies the `inline` sparsifier, which makes a tensor of the format `tmp`, then
    the `external` sparsifier selects from it, and the kept entries are stored as `out`."""

    inline: Any
    tmp: Format
    external: Any
    out: Format


KEEP_ALL = KeepAll()
DENSE = TensorFormat(KEEP_ALL, torch.Tensor, KEEP_ALL, torch.Tensor)


def storage_class(format: Any) -> type:
    """Return the storage class of a format, by which formats are compared. Raise `SparsityError` if it is no format."""
    if isinstance(format, Layout):
        return format.storage
    if not isinstance(format, type):
        raise SparsityError(f"{format!r} is no format", hint="give a storage class, a layout, or `torch.Tensor`")
    if issubclass(format, Layout):
        return format.storage
    if format is not torch.Tensor and not callable(getattr(format, "to_dense", None)):
        raise SparsityError(
            f"`{format.__name__}` is no format: it has no method `to_dense`",
            hint="give it `to_dense(self)`, which returns the dense tensor that it stores",
        )
    return format


def storage_classes(formats: Iterable[Any] | None) -> tuple[type, ...]:
    """Return the classes of several formats, without None, the format of a value that is no tensor."""
    return tuple(storage_class(format) for format in formats or () if format is not None)


def tensor_format(format: Any) -> TensorFormat:
    """Return a format of a result that is written as four values, as an `OutputFormat`, or as None for a dense one.

    Raise `SparsityError` for anything else.
    """
    if format is None:
        return DENSE
    if isinstance(format, OutputFormat):
        return TensorFormat(format.inline, format.tmp, format.external, format.layout)
    values = tuple(format) if isinstance(format, Iterable) else (format,)
    if len(values) != 4:
        raise SparsityError(
            f"the format of a result has 4 parts, and not {len(values)}",
            hint="write (inline sparsifier, temporary format, external sparsifier, format)",
        )
    return TensorFormat(*values)
