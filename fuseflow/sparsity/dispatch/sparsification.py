"""The application of sparsifiers to tensors: an implementation for their formats, else selecting and packing."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from fuseflow.errors import DispatchError
from fuseflow.sparsity.dispatch.failure import class_name, missing, report, sparsifier_failure
from fuseflow.sparsity.dispatch.registry import REGISTRY, Path, SameFormatSparsifier, shortest_path
from fuseflow.sparsity.dispatch_formats import Format, TensorFormat, storage_class
from fuseflow.sparsity.entry_positions import compact, places_of
from fuseflow.sparsity.layouts.layout import Layout, kept_of, require_fit
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.storage_tensor import StorageTensor


def format_of(tensor: torch.Tensor) -> type:
    """Return the storage class of a tensor, which is `torch.Tensor` if it is not wrapped."""
    return type(tensor.wrapped_tensor) if isinstance(tensor, StorageTensor) else torch.Tensor


def dense_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as a dense one, without gradient."""
    return tensor.stored_dense() if isinstance(tensor, StorageTensor) else tensor.detach()


def formatted(tensor: torch.Tensor, format: TensorFormat, wrapper: type[StorageTensor]) -> torch.Tensor:
    """Return a dense result in a format. Its inline and its external sparsifier choose the entries, one after the other."""
    return sparsified(sparsified(tensor, format.inline, format.tmp, wrapper), format.external, format.out, wrapper)


def sparsified(tensor: torch.Tensor, sparsifier: Any, out: Format, wrapper: type[StorageTensor]) -> torch.Tensor:
    """Return the entries of a tensor that a sparsifier keeps, in a format. `wrapper` is the class of stored tensors.

    Raise `DispatchError` if nothing is registered for a sparsifier or a storage class of the user.
    """
    inp, target = format_of(tensor), storage_class(out)
    if isinstance(sparsifier, KeepAll) and inp is target:
        return tensor
    function = REGISTRY.sparsifiers.get((type(sparsifier), inp, target))
    if function is not None:
        return tensor_of(function(sparsifier, tensor), wrapper)
    if isinstance(sparsifier, KeepAll):
        path = shortest_path(inp, target)
        if path is not None:
            return converted(tensor, path, wrapper)
    return tensor_of(_default(tensor, sparsifier, out), wrapper)


def converted(tensor: torch.Tensor, path: Path, wrapper: type[StorageTensor]) -> torch.Tensor:
    """Return a tensor after the lossless conversions `path`, one after the other, without gradient."""
    storage: Any = tensor.wrapped_tensor if isinstance(tensor, StorageTensor) else tensor
    for conversion in path:
        storage = conversion(storage)
    return tensor_of(storage, wrapper) if path else tensor


def tensor_of(value: Any, wrapper: type[StorageTensor]) -> torch.Tensor:
    """Return the result of a sparsifier or a conversion. Raise `DispatchError` if it is no tensor."""
    tensor = as_tensor(value, wrapper)
    if not isinstance(tensor, torch.Tensor):
        raise DispatchError(
            f"the implementation of a sparsifier returned a {type(value).__name__}, which is no tensor",
            hint="return a `PackedTensor`, or an object with a method `to_dense`",
        )
    return tensor


def as_tensor(value: Any, wrapper: type[StorageTensor]) -> Any:
    """Return the result of an implementation, wrapped if it is a bare storage."""
    if isinstance(value, torch.Tensor) or not callable(getattr(value, "to_dense", None)):
        return value
    if places_of(type(value)) is not None:
        return wrapper.of_storage(value)
    return wrapper.wrapped_from_dense(value, value.to_dense().detach())


def _default(tensor: torch.Tensor, sparsifier: Any, out: Format) -> Any:
    """Return the entries that a sparsifier keeps as a storage (or a dense tensor), where no implementation is registered for this case."""
    inp, target = format_of(tensor), storage_class(out)
    lack = type(sparsifier), inp, target
    if inp is not torch.Tensor and (type(sparsifier), torch.Tensor, target) in REGISTRY.sparsifiers:
        report(*sparsifier_failure(*lack))
        return REGISTRY.sparsifiers[type(sparsifier), torch.Tensor, target](sparsifier, dense_of(tensor))
    dense = dense_of(tensor)
    if isinstance(sparsifier, SameFormatSparsifier):
        if target is torch.Tensor:
            return dense
        storage, places = sparsifier.ref_sp_ten.wrapped_tensor, places_of(target)
        if places is None or type(storage) is not target:
            raise missing(*sparsifier_failure(*lack))
        return places.with_values(storage, places.gather(storage, dense))
    if not isinstance(sparsifier, Sparsifier):
        raise missing(*sparsifier_failure(*lack))
    mask = dense != 0 if isinstance(sparsifier, KeepAll) else sparsifier.select(dense)
    if target is torch.Tensor:
        return kept_of(dense, mask)
    layout = _layout(sparsifier, out)
    if layout is None and hasattr(target, "from_dense"):
        return target.from_dense(kept_of(dense, mask))
    if layout is None:
        raise missing(*sparsifier_failure(*lack))
    require_fit(layout, mask, "result")
    return compact(layout.pack(dense, mask))


def _layout(sparsifier: Sparsifier, out: Format) -> Layout | None:
    """Return the layout that makes storages of a format: `out` itself, the layout of the sparsifier, or one without parameters;
    None for no known layout."""
    if isinstance(out, Layout):
        return out
    target = storage_class(out)
    if sparsifier.layout.storage is target:
        return sparsifier.layout
    classes = [cls for cls in LAYOUTS.values() if cls.storage is target]
    if not classes:
        return None
    parameters = dataclasses.fields(classes[0])  # type: ignore[arg-type]
    if any(field.default is dataclasses.MISSING for field in parameters):
        names = ", ".join(field.name for field in parameters)
        raise DispatchError(
            f"`{sparsifier}` cannot store a tensor as `{class_name(target)}`, which has parameters ({names})",
            hint=f"give the layout itself as the format: `sp.{classes[0].__name__}(...)`",
        )
    return classes[0]()
