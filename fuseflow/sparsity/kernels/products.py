"""The operators that are products of a stored matrix with dense tensors: `linear`, `mm`, `matmul` and `addmm`, with their gradients.

The gradient of a stored matrix is computed at its places only. If its format asks for a dense gradient, it is a dense product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fuseflow.errors import DispatchError
from fuseflow.sparsity.dispatch.argument_binding import Operator, operator_name
from fuseflow.sparsity.dispatch.registry import SameFormatSparsifier, register_bwd_op_impl, register_fwd_op_impl
from fuseflow.sparsity.entry_positions import known_places
from fuseflow.sparsity.kernels.matrix_kernels import KERNELS, ProductKernel
from fuseflow.sparsity.kernels.panels import PANEL_KERNELS
from fuseflow.sparsity.sparsifiers.built_in import KeepAll


class Side:
    """The way in which a dense tensor is viewed as a matrix, whose columns are multiplied one by one: here, it is a matrix itself."""

    def columns(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the matrix of a tensor, [length, columns]."""
        return tensor

    def restored(self, columns: torch.Tensor, like: torch.Size) -> torch.Tensor:
        """Return the tensor that a matrix `columns` represents. The other dimensions of the tensor are as in the shape `like`."""
        return columns


class Rows(Side):
    """The last dimension of a tensor is multiplied: x [..., length]."""

    def columns(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(tensor.shape[:-1].numel(), tensor.shape[-1]).T

    def restored(self, columns: torch.Tensor, like: torch.Size) -> torch.Tensor:
        return columns.T.reshape(*like[:-1], columns.shape[0])


class Columns(Side):
    """The last but one dimension of a tensor is multiplied, or the only one: x [..., length, n] or [length]."""

    def columns(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 1:
            return tensor.unsqueeze(1)
        return tensor.movedim(-2, 0).reshape(tensor.shape[-2], tensor.shape[:-2].numel() * tensor.shape[-1])

    def restored(self, columns: torch.Tensor, like: torch.Size) -> torch.Tensor:
        if len(like) == 1:
            return columns.squeeze(1)
        return columns.reshape(columns.shape[0], *like[:-2], like[-1]).movedim(0, -2)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of a stored matrix P, or of its transpose, with a dense tensor, and a dense tensor that is added to it.

    `stored`, `dense` and `added` are the numbers of these three among the tensors of the call. `operand` and `result` say how the
    dense tensor and the result are matrices.
    """

    operator: Operator
    stored: int
    dense: int
    added: int | None
    operand: Side
    result: Side
    transposed: bool = False

    @property
    def count(self) -> int:
        """How many tensors the call has."""
        return 2 if self.added is None else 3

    def classes(self, storage: type) -> list[type]:
        """Return the formats of the tensors of the call."""
        return [storage if place == self.stored else torch.Tensor for place in range(self.count)]


ROWS, COLUMNS, ITSELF = Rows(), Columns(), Side()
linear = torch.nn.functional.linear

PRODUCTS = (
    Product(linear, 1, 0, None, ROWS, ROWS),
    Product(linear, 1, 0, 2, ROWS, ROWS),
    Product(linear, 0, 1, None, ROWS, ITSELF),
    Product(linear, 0, 1, 2, ROWS, ITSELF),
    Product(torch.mm, 0, 1, None, COLUMNS, COLUMNS),
    Product(torch.mm, 1, 0, None, ROWS, ROWS, transposed=True),
    Product(torch.matmul, 0, 1, None, COLUMNS, COLUMNS),
    Product(torch.matmul, 1, 0, None, ROWS, ROWS, transposed=True),
    Product(torch.addmm, 1, 2, 0, COLUMNS, COLUMNS),
    Product(torch.addmm, 2, 1, 0, ROWS, ROWS, transposed=True),
)


def register_products(storage: type, kernel: ProductKernel) -> None:
    """Register `linear`, `mm`, `matmul` and `addmm` of matrices of a storage class, whose places are known."""
    for product in PRODUCTS:
        classes = product.classes(storage)
        register_fwd_op_impl(product.operator, classes)(_forward(product, kernel))
        for gradient in ((SameFormatSparsifier, storage), (KeepAll, torch.Tensor)):
            outputs = [gradient if place == product.stored else (KeepAll, torch.Tensor) for place in range(product.count)]
            register_bwd_op_impl(product.operator, [torch.Tensor], outputs, classes)(_backward(product, kernel))


def _forward(product: Product, kernel: ProductKernel) -> Any:
    def forward(ctx: Any, inputs: Sequence[torch.Tensor], output_sparsifiers: Sequence[Any]) -> Any:
        stored, dense = inputs[product.stored], inputs[product.dense]
        if stored.dim() != 2 or not stored.is_floating_point() or not _has_rank(product, dense):
            return NotImplemented
        _require_types(product, inputs)
        columns = product.operand.columns(dense)
        _require_length(product, stored, columns)
        ctx.factors = ctx.call.arguments.get("beta", 1), ctx.call.arguments.get("alpha", 1)  # which only `addmm` has
        ctx.added_shape = None if product.added is None else inputs[product.added].shape
        ctx.save_for_backward(stored, dense)
        multiply = kernel.multiply_transposed if product.transposed else kernel.multiply
        result = product.result.restored(multiply(stored.wrapped_tensor, columns), dense.shape)  # type: ignore[attr-defined]
        return result if product.added is None else _with_added(result, inputs[product.added], ctx.factors)

    return forward


def _backward(product: Product, kernel: ProductKernel) -> Any:
    def backward(ctx: Any, grad_outputs: Sequence[torch.Tensor], input_sparsifiers: Sequence[Any]) -> list[Any]:
        (grad,) = grad_outputs
        stored, dense = ctx.saved_tensors
        beta, alpha = ctx.factors
        columns = product.result.columns(grad if alpha == 1 else grad * alpha)
        needed = ctx.needs_input_grad[2:]
        gradients: list[Any] = [None] * product.count
        if needed[product.dense]:
            multiply = kernel.multiply if product.transposed else kernel.multiply_transposed
            gradients[product.dense] = product.operand.restored(multiply(stored.wrapped_tensor, columns), dense.shape)
        if needed[product.stored]:
            operand, storage = product.operand.columns(dense), stored.wrapped_tensor
            left, right = (operand, columns) if product.transposed else (columns, operand)
            if isinstance(input_sparsifiers[product.stored], SameFormatSparsifier):
                sampled = kernel.sample(storage, left, right)
                gradients[product.stored] = known_places(storage).with_values(storage, sampled)
            else:
                gradients[product.stored] = left @ right.T
        if product.added is not None and needed[product.added]:
            added = grad.sum_to_size(ctx.added_shape)
            gradients[product.added] = added if beta == 1 else added * beta
        return gradients

    return backward


def _has_rank(product: Product, dense: torch.Tensor) -> bool:
    """Return whether the operator takes a dense tensor of this rank. If not, PyTorch raises an error."""
    if product.result is ITSELF or product.operator in (torch.mm, torch.addmm):
        return dense.dim() == 2
    return dense.dim() > 0


def _with_added(product: torch.Tensor, added: torch.Tensor, factors: tuple[Any, Any]) -> torch.Tensor:
    beta, alpha = factors
    scaled = product if alpha == 1 else product * alpha
    return scaled + (added if beta == 1 else added * beta) if beta else scaled


def _require_types(product: Product, tensors: Sequence[torch.Tensor]) -> None:
    types = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors})
    if len(types) > 1:
        raise DispatchError(
            f"`{operator_name(product.operator)}` has tensors of different types: {', '.join(types)}",
            hint="convert them with `to`",
        )


def _require_length(product: Product, stored: torch.Tensor, columns: torch.Tensor) -> None:
    length = stored.shape[0 if product.transposed else 1]
    if columns.shape[0] != length:
        raise DispatchError(
            f"`{operator_name(product.operator)}`: the stored matrix of shape {list(stored.shape)} is multiplied with vectors of length "
            f"{length}, and not {columns.shape[0]}"
        )


for _storage, _kernel in (KERNELS | PANEL_KERNELS).items():
    register_products(_storage, _kernel)
