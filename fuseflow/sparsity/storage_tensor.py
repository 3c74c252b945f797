"""Tensors whose entries a storage object holds. They are made, copied and saved here; `packed` has their operators."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, TypeVar

import torch

from fuseflow.errors import SparsityError
from fuseflow.sparsity.dispatch_formats import TensorFormat, storage_class, tensor_format
from fuseflow.sparsity.entry_positions import places_of

T = TypeVar("T", bound="StorageTensor")
_FIELD = "stored_"  # before the name of a field of the storage, in the names by which PyTorch knows the parts of a wrapper


class StorageTensor(torch.Tensor):
    """A tensor of the right shape and type without memory of its own: a storage object holds the entries.

    Tensors that share their memory, such as one and its `detach()`, have one `cell`, which holds the storage.
    """

    cell: list[Any]
    grad_fmt: TensorFormat | None
    """How its gradient is stored. None: at the places of the tensor, or as a dense tensor if its storage has no known places."""

    @staticmethod
    def __new__(
        cls, cell: list[Any], shape: Any, dtype: torch.dtype, device: torch.device, requires_grad: bool, grad_fmt: Any
    ) -> StorageTensor:
        tensor = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device, requires_grad=requires_grad)
        tensor.cell = cell
        tensor.grad_fmt = grad_fmt
        return tensor

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    @classmethod
    def wrapped_from_dense(cls: type[T], storage: Any, dense: torch.Tensor, grad_fmt: Any = None) -> T:
        """Return a tensor that a storage holds. Its shape, type and device, and whether it requires a gradient, are taken from `dense`.

        `grad_fmt` is the format of its gradient, as (inline sparsifier, temporary format, external sparsifier, format). Raise
        `SparsityError` for a storage that cannot be made dense.
        """
        storage_class(type(storage))
        format = None if grad_fmt is None else tensor_format(grad_fmt)
        return cls([storage], dense.shape, dense.dtype, dense.device, dense.requires_grad, format)

    @classmethod
    def of_storage(cls: type[T], storage: Any, shape: Any = None, grad_fmt: Any = None) -> T:
        """Return a tensor whose entries a storage holds. The places of the storage are known."""
        values = known_values(storage)
        known = getattr(storage, "shape", values.shape)  # A dense storage has the shape of its values.
        return cls([storage], tuple(known) if shape is None else shape, values.dtype, values.device, False, grad_fmt)

    @property
    def wrapped_tensor(self) -> Any:
        """The storage that holds the entries."""
        return self.cell[0]

    @wrapped_tensor.setter
    def wrapped_tensor(self, storage: Any) -> None:
        self.cell[0] = storage

    def stored_dense(self) -> torch.Tensor:
        """Return a dense tensor of the entries, without gradient. Its memory is in the order of its dimensions, as the strides say."""
        dense: torch.Tensor = self.wrapped_tensor.to_dense()
        return dense.detach().contiguous()

    def alias(self: T) -> T:
        """Return another tensor of the same storage, without gradient."""
        return type(self)(self.cell, self.shape, self.dtype, self.device, False, self.grad_fmt)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(_FIELD):
            return getattr(self.wrapped_tensor, name.removeprefix(_FIELD))
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        storage = self.wrapped_tensor
        if places_of(type(storage)) is None:
            raise SparsityError(
                f"a tensor stored as `{type(storage).__name__}` cannot be traced",
                hint="its places are unknown: call `register_places`, or use one of the layouts of fuseflow",
            )
        content = _content(storage)
        tensors = [_FIELD + name for name, value in content.items() if isinstance(value, torch.Tensor)]
        rest = tuple((name, value) for name, value in content.items() if not isinstance(value, torch.Tensor))
        return tensors, (type(storage), rest, self.grad_fmt)

    @classmethod
    def __tensor_unflatten__(cls: type[T], inner: dict[str, torch.Tensor], meta: Any, size: Any, stride: Any) -> T:
        storage, rest, grad_fmt = meta
        tensors = {name.removeprefix(_FIELD): value for name, value in inner.items()}
        return cls.of_storage(storage(**tensors, **dict(rest)), size, grad_fmt)

    def __deepcopy__(self: T, memo: dict[int, Any]) -> T:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise SparsityError("only tensors that were not computed with gradients can be copied deeply", hint="`detach()` it")
        result = self._with_cell(copy.deepcopy(self.cell, memo))
        result.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = result
        return result

    def __copy__(self: T) -> T:
        return self._with_cell(self.cell)

    def _with_cell(self: T, cell: list[Any]) -> T:
        """Return a copy with this cell. PyTorch marks parameters of subclasses with an attribute, which it takes over."""
        result = type(self)(cell, self.shape, self.dtype, self.device, self.requires_grad, self.grad_fmt)
        if isinstance(self, torch.nn.Parameter):
            result._is_param = True
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        storage, parameter = self.wrapped_tensor, isinstance(self, torch.nn.Parameter)
        # Only a class without known places is saved as the object that it is.
        content = storage if places_of(type(storage)) is None else _content(storage)
        state = (tuple(self.shape), self.dtype, str(self.device), self.requires_grad, self.grad_fmt, parameter)
        return rebuild, (type(self), type(storage), content, *state)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        kind = "parameter, " if isinstance(self, torch.nn.Parameter) else ""
        grad = ", requires_grad=True" if self.requires_grad else ""
        places = places_of(type(self.wrapped_tensor))
        count = "" if places is None else f", {places.values(self.wrapped_tensor).numel()} of {self.numel()} stored"
        name = type(self.wrapped_tensor).__name__
        return f"{type(self).__name__}({kind}{name}, shape={list(self.shape)}, dtype={self.dtype}{count}{grad})"


def known_values(storage: Any) -> torch.Tensor:
    """Return the values of a storage whose places are known. Raise `SparsityError` if they are not."""
    places = places_of(type(storage))
    if places is None:
        raise SparsityError(
            f"where the entries of a `{type(storage).__name__}` stand is not known",
            hint="wrap it with `PackedTensor.wrapped_from_dense(storage, dense)`",
        )
    return places.values(storage)


def rebuild(cls: type[T], storage: type, content: Any, *state: Any) -> T:
    """Return the tensor whose class, storage and `state` were saved by `__reduce_ex__`. `content` has the fields of the storage,
    or the storage itself."""
    shape, dtype, device, requires_grad, grad_fmt, parameter = state
    held = storage(**content) if isinstance(content, dict) else content
    result = cls([held], torch.Size(shape), dtype, torch.device(device), requires_grad, grad_fmt)
    if parameter:
        result._is_param = True
    return result


def _content(storage: Any) -> dict[str, Any]:
    return {field.name: getattr(storage, field.name) for field in dataclasses.fields(storage)}
