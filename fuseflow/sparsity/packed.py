"""Packed tensors: stored sparse tensors on which PyTorch computes.

An operator with an implementation for the formats of its arguments runs that, forward and backward. Any other runs on dense tensors, with a
`DispatchWarning`. Updates in place keep the places of a tensor: the result is read back where entries are stored.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fuseflow.errors import SparsityError
from fuseflow.sparsity.dispatch.argument_binding import Operator, aten_packet, canonical, operator_name, schemas_of
from fuseflow.sparsity.dispatch.calls import Call, densified, run_dense, run_implemented
from fuseflow.sparsity.dispatch.failure import operator_failure, report
from fuseflow.sparsity.dispatch.registry import REGISTRY, SameFormatSparsifier
from fuseflow.sparsity.dispatch.sparsification import dense_of, format_of, sparsified
from fuseflow.sparsity.dispatch_formats import KEEP_ALL
from fuseflow.sparsity.entry_positions import PLACES, known_places, places_of
from fuseflow.sparsity.grouped.grouping import ChunkGrid
from fuseflow.sparsity.kernels.pointwise import broadcasts
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.registration_decorators import MODULES
from fuseflow.sparsity.storage_tensor import StorageTensor, known_values, rebuild

assert MODULES  # The implementations are registered when they are imported.
aten = torch.ops.aten

_running: ContextVar[Operator | None] = ContextVar("running_operator", default=None)
"""The operator that the user called and that PyTorch is running on packed tensors, for warnings."""

_KEEPING = (
    "detach alias clone to type type_as cpu cuda float double half bfloat16 contiguous view_as zeros_like empty_like new_empty_strided "
    "pin_memory data requires_grad_ retain_grad backward"
)
_KEPT = frozenset(_KEEPING.split())
"""Functions whose results keep the format of the tensor, or that are about a tensor, and not about its entries."""
_READING = "__getitem__ __array__ numpy tolist item __rsub__ __rdiv__ __rtruediv__ __rpow__ __floordiv__ __rmatmul__"
_READ = frozenset(_READING.split())
"""Methods without an operator of their name that read the entries."""
_THROUGH_VIEWS = frozenset(["__setitem__", "fill_diagonal_"])
"""Methods that change a tensor by writing to a view of it. A packed tensor has no views: its functions return copies."""


class PackedTensor(StorageTensor):
    """The base class of tensors that store only their kept entries, such as `CsrTensor`. One is made with `wrapped_from_dense`, or by
    `pack`."""

    @classmethod
    def __torch_function__(
        cls, func: Operator, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if torch.compiler.is_compiling():
            return _plain(func, args, named)
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.backward:  # With functions of tensors enabled, which implementations of gradients may call.
            return torch.autograd.backward(*args, **{"grad_tensors" if k == "gradient" else k: v for k, v in named.items()})
        if func == torch.Tensor.data.__set__:  # type: ignore[attr-defined]
            return _set_data(args[0], args[1])
        if name in _THROUGH_VIEWS and isinstance(args[0], PackedTensor):
            return _update_through_views(func, args[0], tuple(args[1:]), named)
        operator = canonical(func)
        has_rows, reads = operator in REGISTRY.forward, _reads_entries(operator)
        if has_rows or reads:
            call = Call(func, tuple(args), named, None, PackedTensor)
            result = run_implemented(call) if has_rows else NotImplemented
            if result is not NotImplemented:
                return result
            if reads and not call.arguments.get("inplace", False) and call.arguments.get("out") is None:
                return run_dense(call)
        token = _running.set(operator)
        try:
            updates = name.endswith("_") and (not name.startswith("__") or name.startswith("__i"))
            if args and isinstance(args[0], PackedTensor) and updates:
                others, named = pytree.tree_map(_with_dense_gradient, (tuple(args[1:]), named))
                return _plain(func, (args[0], *others), named)
            return _plain(func, args, named)
        finally:
            _running.reset(token)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        rule = _ATEN_RULES.get(func)
        result = NotImplemented if rule is None else rule(func, *args, **named)
        if result is not NotImplemented:
            return result
        if args and isinstance(args[0], PackedTensor) and _written(func) == [func._schema.arguments[0].name]:
            return _update(func, args[0], tuple(args[1:]), named)
        report_dense(func, args, named)
        return _run_on_dense(func, args, named)


class _DenseGradient(torch.autograd.Function):
    """A dense tensor whose gradient is dense. PyTorch writes to views of gradients, which packed ones do not have."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return dense_of(gradient)


def _with_dense_gradient(leaf: Any) -> Any:
    """Return an argument of an updating method. A dense tensor that requires a gradient gets a gradient that is dense."""
    needs = isinstance(leaf, torch.Tensor) and leaf.requires_grad and not isinstance(leaf, PackedTensor)
    return _DenseGradient.apply(leaf) if needs else leaf  # type: ignore[no-untyped-call]


class _ParameterKind(type):
    """The class of `PackedParameter`: packed tensors that are parameters count as its instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, PackedTensor) and isinstance(instance, torch.nn.Parameter)


class PackedParameter(metaclass=_ParameterKind):
    """A packed tensor that is a parameter of a module. A call returns a `PackedTensor` of the same storage, marked as parameters are."""

    def __new__(cls, tensor: PackedTensor, requires_grad: bool = True) -> Any:
        """Return a parameter. Raise `SparsityError` for a value that is no packed tensor."""
        if not isinstance(tensor, PackedTensor):
            raise SparsityError(f"a {type(tensor).__name__} is no packed tensor", hint="use `torch.nn.Parameter` for dense ones")
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)


def _plain(func: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a function that PyTorch runs without overrides: it calls operators of ATen on packed tensors."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def _reads_entries(operator: Operator) -> bool:
    """Return whether a function computes tensors from entries, rather than saying something about a tensor or changing it."""
    name = getattr(operator, "__name__", "")
    if name in _READ:
        return True
    if name in _KEPT or name.startswith("__") or name.endswith("_"):
        return False
    if getattr(operator, "__module__", None) in ("torch.functional", "torch.nn.functional"):
        return True
    packet = aten_packet(operator)
    if packet is None:
        return False
    return any("Tensor" in str(result.type) for schema in schemas_of(packet) for result in schema.returns)


def _written(func: Any) -> list[str]:
    """Return the names of the arguments that an operator of ATen changes."""
    return [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def _set_data(tensor: PackedTensor, data: torch.Tensor) -> None:
    """Do `tensor.data = data`: share the entries of a packed tensor, or take elements of a dense one at the same places."""
    if isinstance(data, PackedTensor) and data.shape == tensor.shape and data.dtype == tensor.dtype:
        tensor.cell = data.cell
    else:
        read_back(tensor, data.detach().to(tensor.dtype))


def read_back(tensor: PackedTensor, dense: torch.Tensor) -> None:
    """Store the elements of a dense tensor at the places of a packed tensor in the packed tensor."""
    if dense.shape != tensor.shape:
        raise SparsityError(f"a tensor of shape {list(dense.shape)} is no value for one of shape {list(tensor.shape)}")
    storage = tensor.wrapped_tensor
    places = places_of(type(storage))
    if places is not None:
        places.values(storage).copy_(places.gather(storage, dense))
    else:
        result = sparsified(dense, SameFormatSparsifier(tensor.alias()), type(storage), PackedTensor)
        tensor.wrapped_tensor = result.wrapped_tensor  # type: ignore[attr-defined]


def _update(func: Any, tensor: PackedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PackedTensor:
    """Run an operator that changes a packed tensor, and return the tensor. Its places stay.

    Functions of single entries, and random numbers, are computed on the stored entries. Others see a dense tensor, whose entries
    at the places are read back. Raise `SparsityError` for an operator that changes the shape.
    """
    if torch.Tag.inplace_view in func.tags:
        name = operator_name(_running.get() or func)
        raise SparsityError(
            f"`{name}` cannot change the shape of a packed tensor in place",
            hint="call the function without `_`, which returns another one",
        )
    storage = tensor.wrapped_tensor
    places = places_of(type(storage))
    local = torch.Tag.pointwise in func.tags or torch.Tag.nondeterministic_seeded in func.tags or func in _ENTRYWISE
    others = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if places is None or not local or not all(broadcasts(other, tensor) for other in others):
        if not local:
            report_dense(func, (tensor, *args), kwargs)
        dense = tensor.stored_dense().clone()
        _run_on_dense(func, (dense, *args), kwargs)
        read_back(tensor, dense)
        return tensor

    def entries(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dim() == 0:
            return leaf
        other = leaf.wrapped_tensor if isinstance(leaf, PackedTensor) else None
        if type(other) is type(storage) and places.agree(storage, other):
            found = places.values(other)
        else:
            found = places.gather(storage, leaf.stored_dense() if isinstance(leaf, PackedTensor) else leaf.expand(tensor.shape))
        return found if stored is None else found.masked_fill(~stored, 1)  # Whole numbers cannot be divided by 0.

    values, stored = places.values(storage), places.stored(storage)
    func(values, *pytree.tree_map(entries, args), **pytree.tree_map(entries, kwargs))
    if stored is not None:
        values.masked_fill_(~stored, 0)  # A product would leave NaN.
    return tensor


def _update_through_views(func: Operator, tensor: PackedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PackedTensor:
    """Run a function that changes a tensor by writing to views of it, on a dense tensor, which is read back at the places."""
    report_dense(func, (tensor, *args), kwargs)
    dense = densified(tensor)
    func(dense, *args, **kwargs)
    tensor.copy_(dense)
    return tensor


def report_dense(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Report as the mode says that tensors are made dense, unless they are stored dense, or PyTorch only traces the operator."""
    packed = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, PackedTensor)]
    if not all(_is_dense(tensor) or _is_traced(tensor) for tensor in packed):
        formats = tuple(format_of(leaf) for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
        report(*operator_failure(_running.get() or func, formats, ()))


def _run_on_dense(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of an operator of ATen on dense copies. A packed tensor that it changes reads back its places."""
    names = [argument.name for argument in func._schema.arguments]
    passed = dict(zip(names, args, strict=False)) | dict(kwargs)
    written = {id(leaf) for name in _written(func) for leaf in pytree.tree_leaves(passed.get(name))}
    changed: dict[int, tuple[PackedTensor, torch.Tensor]] = {}

    def dense(leaf: Any) -> Any:
        if not isinstance(leaf, PackedTensor):
            return leaf
        value = leaf.stored_dense()
        if id(leaf) in written:
            changed[id(value)] = leaf, value
        return value

    values, named = pytree.tree_map(dense, (tuple(args), dict(kwargs)))
    result = func(*values, **named)
    for tensor, value in changed.values():
        read_back(tensor, value)
    return pytree.tree_map(lambda leaf: changed[id(leaf)][0] if id(leaf) in changed else leaf, result)


def _is_dense(tensor: PackedTensor) -> bool:
    return isinstance(tensor.wrapped_tensor, DenseTensor | MaskedSparseTensor)


def _is_traced(tensor: PackedTensor) -> bool:
    """Return whether the storage holds no real tensors but the stand-ins of a trace, as in an export."""
    places = places_of(type(tensor.wrapped_tensor))
    return places is not None and type(places.values(tensor.wrapped_tensor)) is not torch.Tensor


def _alias(func: Any, tensor: PackedTensor) -> PackedTensor:
    if _is_traced(tensor):
        return _of_values(tensor, func(_values(tensor)))
    return tensor.alias()


def _view(func: Any, tensor: PackedTensor, size: Sequence[int]) -> Any:
    """Return an alias of the tensor if `size` is its shape, else `NotImplemented`, which makes the result dense."""
    return tensor.alias() if tuple(size) == tuple(tensor.shape) and not _is_traced(tensor) else NotImplemented


def _clone(func: Any, tensor: PackedTensor, memory_format: Any = None) -> PackedTensor:
    if places_of(type(tensor.wrapped_tensor)) is None:
        storage = copy.deepcopy(tensor.wrapped_tensor)
        return PackedTensor([storage], tensor.shape, tensor.dtype, tensor.device, False, tensor.grad_fmt)
    return _of_values(tensor, _values(tensor).clone())


def _converted(func: Any, tensor: Any, **options: Any) -> Any:
    """Return a packed tensor of another type or on another device."""
    storage = tensor.wrapped_tensor
    places = places_of(type(storage))
    dtype, device = options.get("dtype") or tensor.dtype, options.get("device") or tensor.device
    if places is None:
        dense = tensor.stored_dense().to(device, dtype)
        return sparsified(dense, SameFormatSparsifier(tensor.alias()), type(storage), PackedTensor)
    moved = {name: v.to(device) if isinstance(v, torch.Tensor) else v for name, v in places.pattern(storage).items()}
    values = places.values(storage).to(device, dtype, copy=True)
    held = dataclasses.replace(storage, **moved, **{places.field: values})
    return PackedTensor([held], tensor.shape, dtype, torch.device(device), False, tensor.grad_fmt)


def _empty(func: Any, tensor: PackedTensor, *size: Any, **options: Any) -> Any:
    """Return a tensor of zeros at the same places. One of another size is dense."""
    if places_of(type(tensor.wrapped_tensor)) is None or (size and tuple(size[0]) != tuple(tensor.shape)):
        return NotImplemented
    if func is aten.zeros_like.default and _is_dense(tensor):
        return NotImplemented
    dtype = options.get("dtype") or tensor.dtype
    return _of_values(tensor, torch.zeros_like(_values(tensor), dtype=dtype))


def _linear(func: Any, first: Any, second: Any = None, **options: Any) -> Any:
    """Return a sum, difference or multiple that PyTorch needs to add up gradients, if the places are the same."""
    if isinstance(first, PackedTensor) and isinstance(second, PackedTensor):
        places = places_of(type(first.wrapped_tensor))
        same = places is not None and format_of(first) is format_of(second) and first.shape == second.shape
        if not same or places is None or not places.agree(first.wrapped_tensor, second.wrapped_tensor):
            return NotImplemented
        return _of_values(first, func(_values(first), _values(second), **options))
    if second is None and isinstance(first, PackedTensor) and places_of(type(first.wrapped_tensor)) is not None:
        return _of_values(first, func(_values(first), **options))
    return NotImplemented


def _values(tensor: PackedTensor) -> torch.Tensor:
    return known_values(tensor.wrapped_tensor)


def _of_values(tensor: PackedTensor, values: torch.Tensor) -> PackedTensor:
    """Return a packed tensor that has other values at the same places. Padding must be 0 in them."""
    storage = tensor.wrapped_tensor
    held = dataclasses.replace(storage, **{known_places(storage).field: values})
    return PackedTensor([held], tensor.shape, values.dtype, values.device, False, tensor.grad_fmt)


_ENTRYWISE = frozenset((aten.copy_.default, aten.zero_.default, aten.fill_.Scalar, aten.fill_.Tensor))
"""Operators that change single entries, although PyTorch does not mark them as pointwise."""

_ATEN_RULES: dict[Any, Callable[..., Any]] = {
    aten.detach.default: _alias,
    aten.alias.default: _alias,
    aten.view.default: _view,
    aten.clone.default: _clone,
    aten._to_copy.default: _converted,
    aten.zeros_like.default: _empty,
    aten.empty_like.default: _empty,
    aten.new_empty_strided.default: _empty,
    aten.add.Tensor: _linear,
    aten.sub.Tensor: _linear,
    aten.neg.default: _linear,
}
"""The implementations of ATen operators on packed tensors, where they are not the dense result or an update in place."""

torch.serialization.add_safe_globals([rebuild, PackedTensor, ChunkGrid, *PLACES, KEEP_ALL.__class__])
