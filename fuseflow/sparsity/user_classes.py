"""Sparsifiers and layouts of the user that are no more than classes: the implementations registered for them say what they do.

A class of tensors has a method `to_dense`. The implementation of a sparsifier takes a tensor to such a class. They run in PyTorch only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fuseflow.errors import SparsityError
from fuseflow.keep_rules import Kind
from fuseflow.sparsity.dispatch.failure import missing, sparsifier_failure
from fuseflow.sparsity.dispatch.registry import REGISTRY
from fuseflow.sparsity.layouts.layout import Layout, Masked, kept_of
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.storage_tensor import StorageTensor


@dataclass(frozen=True, slots=True)
class ClassLayout(Layout):
    """A class of tensors of the user. It packs with its `from_dense`, or with the implementation registered for `KeepAll` and the class."""

    name = "class"
    fits_by_shape: ClassVar[bool] = True

    storage: type  # type: ignore[misc]

    def pack(self, tensor: torch.Tensor, mask: torch.Tensor) -> Any:
        dense = kept_of(tensor, mask)
        if callable(getattr(self.storage, "from_dense", None)):
            return self.storage.from_dense(dense)  # type: ignore[attr-defined]
        return _stored(KeepAll(), dense, self.storage)

    def __str__(self) -> str:
        return self.storage.__name__


@dataclass(frozen=True, slots=True)
class ClassSparsifier(Sparsifier):
    """An object of the user that selects entries, as its implementation for a class of tensors says. Its zeros are not kept."""

    name = "object"
    kind: ClassVar[Kind] = "materializing"

    rule: Any
    storage: type

    def select(self, tensor: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        dense = _stored(self.rule, tensor, self.storage)
        values: torch.Tensor = dense if isinstance(dense, torch.Tensor) else dense.to_dense()
        if values.shape != tensor.shape:
            raise SparsityError(
                f"`{self}` makes a tensor of shape {list(values.shape)} of one of shape {list(tensor.shape)}",
                hint="return all entries, with 0 where one is not kept",
            )
        return values.detach() != 0

    @property
    def layout(self) -> Layout:
        return Masked() if self.storage is torch.Tensor else ClassLayout(self.storage)

    def __str__(self) -> str:
        return type(self.rule).__name__


def is_user_class(value: object) -> bool:
    """Return whether a value is a class of tensors of the user."""
    known = {torch.Tensor, *(cls.storage for cls in LAYOUTS.values())}
    return (
        isinstance(value, type)
        and not issubclass(value, Layout)
        and value not in known
        and callable(getattr(value, "to_dense", None))
    )


def is_registered(rule: object) -> bool:
    """Return whether an implementation is registered for the class of a sparsifier."""
    return any(sparsifier is type(rule) for sparsifier, _, _ in REGISTRY.sparsifiers)


def _stored(rule: Any, tensor: torch.Tensor, storage: type) -> Any:
    """Return the result of a registered implementation for a dense tensor. Raise `DispatchError` if there is none."""
    function = REGISTRY.sparsifiers.get((type(rule), torch.Tensor, storage))
    if function is None:
        raise missing(*sparsifier_failure(type(rule), torch.Tensor, storage))
    result = function(rule, tensor.detach())
    return result.wrapped_tensor if isinstance(result, StorageTensor) else result
