"""The execution of a call: by an implementation that the look-up finds, or on dense tensors; and the same for its gradient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils import _pytree as pytree

from fuseflow.errors import DispatchError
from fuseflow.sparsity.dispatch.argument_binding import (
    Arguments,
    Binding,
    Operator,
    autocast,
    bind,
    canonical,
    fill,
    operator_name,
)
from fuseflow.sparsity.dispatch.failure import class_name, gradient_failure, missing, operator_failure, report
from fuseflow.sparsity.dispatch.registry import (
    BackwardKey,
    Candidate,
    Classes,
    Outputs,
    SameFormatSparsifier,
    backward_candidates,
    forward_candidates,
    output_classes,
    shortest_path,
)
from fuseflow.sparsity.dispatch.sparsification import as_tensor, converted, dense_of, format_of, formatted, sparsified
from fuseflow.sparsity.dispatch_formats import DENSE, KEEP_ALL, TensorFormat, storage_class
from fuseflow.sparsity.entry_positions import places_of
from fuseflow.sparsity.layouts.layout import DenseTensor, MaskedSparseTensor
from fuseflow.sparsity.storage_tensor import StorageTensor

_HELD_DENSE = (torch.Tensor, DenseTensor, MaskedSparseTensor)


class Call:
    """A call of an operator: its arguments by name, and the requested formats of its results.

    `function` is the called function, such as a method, which may take its arguments otherwise than its operator. `outputs` are
    the formats of the results, or None for the formats that an implementation returns. `wrapper` is the class of stored tensors.
    """

    def __init__(
        self,
        function: Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outputs: tuple[TensorFormat, ...] | None,
        wrapper: type[StorageTensor],
    ) -> None:
        self.operator, self.outputs, self.wrapper = canonical(function), outputs, wrapper
        self._function = function
        binding, passed = bind(self.operator, *autocast(function, args, kwargs))
        self._binding: Binding = binding
        self.tensors = [passed[number] for number in binding.order]
        """The tensors that are passed, in the order of the signature."""
        self.arguments = Arguments(fill(binding.names, passed), binding.plain)
        """All arguments by name."""
        self.count = len(self.tensors)
        self.structure: pytree.TreeSpec | None = None
        self.formats: Classes = tuple(map(format_of, self.tensors))
        self.grad_formats = tuple(map(grad_format, self.tensors))
        self.asked: Outputs | None = None if outputs is None else output_classes((f.inline, f.tmp) for f in outputs)

    def on(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Return the result of the function on other tensors, which are in the order of the signature."""
        self.arguments.read_all()
        passed = list(tensors)
        for number, tensor in zip(self._binding.order, tensors, strict=True):
            passed[number] = tensor
        args, kwargs = fill((self._binding.args, self._binding.kwargs), passed)
        return self._function(*args, **kwargs)

    def release(self) -> None:
        """Forget the tensors. An implementation saves the values that a gradient needs."""
        self.tensors = []
        self.arguments.release()


def grad_format(tensor: torch.Tensor) -> TensorFormat:
    """Return the format in which the gradient of a tensor is stored."""
    if not isinstance(tensor, StorageTensor):
        return DENSE
    if tensor.grad_fmt is not None:
        return tensor.grad_fmt
    cls = format_of(tensor)
    if places_of(cls) is None:
        return DENSE
    return TensorFormat(SameFormatSparsifier(tensor.alias()), cls, KEEP_ALL, cls)


def run(call: Call) -> Any:
    """Return the result of a call, by an implementation if there is one, else on dense tensors. It has a gradient."""
    return _unflattened(call, _Dispatched.apply(call, True, *call.tensors))  # type: ignore[no-untyped-call]


def run_implemented(call: Call) -> Any:
    """Return the result of a call by an implementation, or `NotImplemented` if there is none for it."""
    flat = _Dispatched.apply(call, False, *call.tensors)  # type: ignore[no-untyped-call]
    return flat if flat is NotImplemented else _unflattened(call, flat)


def _unflattened(call: Call, flat: tuple[Any, ...]) -> Any:
    assert call.structure is not None
    return pytree.tree_unflatten(list(flat), call.structure)


def run_dense(call: Call) -> Any:
    """Return the result of a call on dense tensors, and report that as the failure mode says. PyTorch computes the gradients,
    each stored in the format of its tensor."""
    _report_dense(call)
    return call.on([densified(t) if isinstance(t, StorageTensor) else t for t in call.tensors])


def densified(tensor: StorageTensor) -> torch.Tensor:
    """Return a stored tensor as a dense one. The stored tensor gets the gradient of the dense one, in its `grad_format`."""
    dense: torch.Tensor = _Densified.apply(tensor)  # type: ignore[no-untyped-call]
    return dense


class _Densified(torch.autograd.Function):
    """A stored tensor as a dense one. Its gradient is stored in the `grad_format` of the tensor."""

    @staticmethod
    def forward(ctx: Any, tensor: StorageTensor) -> torch.Tensor:
        ctx.format, ctx.wrapper = grad_format(tensor), type(tensor)
        return tensor.stored_dense().clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return formatted(dense_of(gradient), ctx.format, ctx.wrapper)


class _Dispatched(torch.autograd.Function):
    """A call as a function with a gradient. It returns the results as a flat tuple, or `NotImplemented` if there is no
    implementation and `dense` tensors are not allowed."""

    @staticmethod
    def forward(ctx: Any, call: Call, dense: bool, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        for candidate in forward_candidates(call.operator, call.formats, call.asked):
            results = _run_forward(ctx, call, candidate, tensors)
            if results is not NotImplemented:
                call.release()
                return results
        if not dense:
            return NotImplemented
        results = _run_forward_dense(ctx, call, tensors)
        call.release()
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        return None, None, *_run_backward(ctx, ctx.call, gradients)


def _run_forward(ctx: Any, call: Call, candidate: Candidate, tensors: Sequence[torch.Tensor]) -> Any:
    """Return the results of the implementation `candidate` in the requested formats. `ctx` keeps what the gradient needs."""
    inputs = [converted(t, path, call.wrapper) for t, path in zip(tensors, candidate.paths, strict=True)]
    exact = call.asked is None or candidate.outputs == call.asked
    sparsifiers = (
        [f.inline for f in call.outputs or ()] if exact and call.outputs else [KEEP_ALL] * max(1, len(candidate.outputs))
    )
    with torch.autocast(inputs[0].device.type, enabled=False):  # Implementations compute in the types that they are passed.
        results = candidate.function(ctx, inputs, sparsifiers)
    if results is NotImplemented:
        return NotImplemented
    ignored = call.arguments.ignored()
    if ignored:
        raise DispatchError(
            f"the implementation of `{operator_name(call.operator)}` does not read `{ignored[0]}`, which is "
            f"{call.arguments[ignored[0]]!r}",
            hint=f'read it as `ctx.call.arguments["{ignored[0]}"]`',
        )
    ctx.formats = tuple(map(format_of, inputs))
    ctx.function, ctx.dense = candidate.function, None
    flat, call.structure = pytree.tree_flatten(results)
    flat = [as_tensor(value, call.wrapper) for value in flat]
    _require_outputs(call, flat, candidate.outputs)
    return tuple(_finished(call, flat, exact))


def _run_forward_dense(ctx: Any, call: Call, tensors: Sequence[torch.Tensor]) -> Any:
    """Compute an operator on dense copies of its tensors, and return the results in the formats that were requested. `ctx` keeps the
    dense copies and the dense results for the backward."""
    _report_dense(call)
    dense = [dense_of(t).requires_grad_(t.requires_grad and t.is_floating_point()) for t in tensors]
    with torch.enable_grad():
        results = call.on(dense)
    flat, call.structure = pytree.tree_flatten(results)
    ctx.formats = call.formats
    ctx.function, ctx.dense = None, (dense, flat)
    if call.outputs:
        _require_outputs(call, flat, ())
    flat = [value.detach() if isinstance(value, torch.Tensor) else value for value in flat]
    return tuple(_finished(call, flat, exact=False))


def _finished(call: Call, flat: list[Any], exact: bool) -> list[Any]:
    """Return the results `flat` in the requested formats. With `exact`, the inline sparsifiers are applied already."""
    if call.outputs is None:
        return [_leafless(value) for value in flat]
    finished = []
    for value, format in zip(flat, call.outputs or (DENSE,) * len(flat), strict=True):
        inline = value if exact else sparsified(value, format.inline, format.tmp, call.wrapper)
        finished.append(_leafless(sparsified(inline, format.external, format.out, call.wrapper)))
    return finished


def _leafless(value: Any) -> Any:
    """Return a result detached from its graph. It gets `requires_grad` from the function that computed it."""
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def _report_dense(call: Call) -> None:
    """Report that the tensors of a call become dense, unless they are stored dense anyway."""
    if not set(call.formats) <= set(_HELD_DENSE):
        report(*operator_failure(call.operator, call.formats, call.asked or ()))


def _require_outputs(call: Call, flat: Sequence[Any], outputs: Outputs) -> None:
    """Raise `DispatchError` if the results `flat` of an implementation have other formats than it is registered for."""
    name = operator_name(call.operator)
    expected = len(outputs) or (len(call.outputs) if call.outputs else len(flat))
    if len(flat) != expected:
        raise DispatchError(f"the implementation of `{name}` returned {_count(len(flat), 'result')}, and not {expected}")
    for value, cls in zip(flat, [cls for _, cls in outputs] or [torch.Tensor] * len(flat), strict=True):
        if isinstance(value, torch.Tensor) and format_of(value) is not cls:
            raise DispatchError(
                f"the implementation of `{name}` returned a `{class_name(format_of(value))}`, and not a `{class_name(cls)}`",
                hint="register it with the format that it gives",
            )


def _run_backward(ctx: Any, call: Call, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """Return the gradient of each tensor of a call, in the format that is requested for the tensor."""
    formats = _backward_formats(ctx, call)
    results = _implemented_gradients(ctx, call, gradients, formats)
    if results is not None:
        return results
    key = _backward_key(ctx, gradients, formats)
    failure = gradient_failure(call.operator, key, ctx.formats)
    if not set(key.grad_outputs) <= set(_HELD_DENSE):
        dense = [dense_of(gradient) for gradient in gradients]
        results = _implemented_gradients(ctx, call, dense, formats)
        if results is not None or ctx.dense is not None:
            report(*failure)
        if results is not None:
            return results
    if ctx.dense is None:
        raise missing(*failure)
    return _dense_gradients(ctx, call, gradients)


def _implemented_gradients(
    ctx: Any, call: Call, gradients: Sequence[torch.Tensor], formats: Sequence[TensorFormat]
) -> list[torch.Tensor | None] | None:
    """Return gradients that an implementation computes, or None if there is none."""
    key = _backward_key(ctx, gradients, formats)
    for candidate in backward_candidates(call.operator, key, ctx.function):
        inputs = [converted(g, path, call.wrapper) for g, path in zip(gradients, candidate.paths, strict=True)]
        exact = candidate.outputs == key.grad_inputs
        sparsifiers = [
            # The requested one, if the implementation is for exactly these formats, or registered for its class.
            format.inline if exact or type(format.inline) is pair[0] else KEEP_ALL
            for format, pair in _with_pairs(formats, candidate.outputs)
        ]
        results = candidate.function(ctx, inputs, sparsifiers)
        if results is not NotImplemented:
            return _finished_gradients(call, _listed(call, results), candidate.outputs, formats)
    return None


def _backward_key(ctx: Any, gradients: Sequence[torch.Tensor], formats: Sequence[TensorFormat]) -> BackwardKey:
    asked = output_classes((f.inline, f.tmp) for f in formats)
    return BackwardKey(tuple(map(format_of, gradients)), asked, ctx.formats)


def _with_pairs(formats: Sequence[TensorFormat], outputs: Outputs) -> list[tuple[TensorFormat, tuple[type, type]]]:
    """Return each format of a gradient with the sparsifier and storage class that the implementation is registered for."""
    pairs = outputs or ((type(KEEP_ALL), torch.Tensor),) * len(formats)
    return list(zip(formats, pairs, strict=True))


def _backward_formats(ctx: Any, call: Call) -> list[TensorFormat]:
    """Return the formats of the gradients that an implementation has to return. If a gradient is to be stored at the places of
    its tensor, and the tensor was converted, these are the places of the converted tensor."""
    formats = []
    for place, (asked, cls) in enumerate(zip(call.grad_formats, ctx.formats, strict=True)):
        same = isinstance(asked.inline, SameFormatSparsifier)
        if same and cls is not call.formats[place]:
            path = shortest_path(call.formats[place], cls)
            assert path is not None
            tensor = converted(asked.inline.ref_sp_ten, path, call.wrapper)
            formats.append(DENSE if cls is torch.Tensor else TensorFormat(SameFormatSparsifier(tensor), cls, KEEP_ALL, cls))
        else:
            formats.append(asked)
    return formats


def _finished_gradients(
    call: Call, results: Iterable[Any], outputs: Outputs, formats: Sequence[TensorFormat]
) -> list[torch.Tensor | None]:
    """Return the gradients of an implementation in the requested formats of the tensors of the call."""
    finished: list[torch.Tensor | None] = []
    pairs = _with_pairs(formats, outputs)
    for value, (format, pair), asked in zip(results, pairs, call.grad_formats, strict=True):
        gradient = as_tensor(value, call.wrapper)
        if gradient is None:
            finished.append(None)
            continue
        if pair != (type(format.inline), storage_class(format.tmp)):
            gradient = sparsified(gradient, format.inline, format.tmp, call.wrapper)
        if format is asked:
            finished.append(sparsified(gradient, asked.external, asked.out, call.wrapper))
        else:
            # The tensor was converted: its gradient is for the places before the conversion.
            finished.append(formatted(dense_of(gradient), asked, call.wrapper))
    return finished


def _listed(call: Call, results: Any) -> list[Any]:
    """Return gradients as a list. Raise `DispatchError` if there is not one for each tensor."""
    gradients = list(results) if isinstance(results, tuple | list) else [results]
    if len(gradients) != call.count:
        raise DispatchError(
            f"the gradient of `{operator_name(call.operator)}` returned {_count(len(gradients), 'value')} for "
            f"{_count(call.count, 'tensor')}",
            hint="return one for each tensor, or None",
        )
    return gradients


def _dense_gradients(ctx: Any, call: Call, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    dense, results = ctx.dense
    wanted = [t for t in dense if t.requires_grad]
    computed = [
        (r, dense_of(g)) for r, g in zip(results, gradients, strict=True) if isinstance(r, torch.Tensor) and r.requires_grad
    ]
    outputs, output_gradients = [result for result, _ in computed], [gradient for _, gradient in computed]
    values = iter(torch.autograd.grad(outputs, wanted, output_gradients, allow_unused=True, retain_graph=True))
    all_gradients = [next(values) if t.requires_grad else None for t in dense]
    formats = call.grad_formats
    return [None if g is None else formatted(g, f, call.wrapper) for g, f in zip(all_gradients, formats, strict=True)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
