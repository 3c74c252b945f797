"""The dense meaning of operators on sparse tensors, and fuseflow's own decompositions of a few operators.

The exported graph is traced a second time with these replacements on dense fake tensors, which have shapes and dtypes but no data. Sparse
layouts concern storage only, and the encodings of the arguments restore them later.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx.traceback import annotate
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.normalization import (
    channel_norm,
    group_norm,
    group_norm_with_statistics,
    layer_norm,
    layer_norm_with_statistics,
    rms_norm,
    variance_along,
)
from fuseflow.frontend.decompositions.operator_formulas import IDENTITIES, added
from fuseflow.frontend.decompositions.recurrent import RECURRENT_REPLACEMENTS
from fuseflow.frontend.decompositions.slices_and_windows import SLIDING_REPLACEMENTS
from fuseflow.frontend.derivatives.attention import attention, log_softmax, logsumexp, softmax
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.hints import HINT_OUTSIDE
from fuseflow.frontend.positions.linear_operators import masked, scanned_along, scores_where
from fuseflow.frontend.positions.losses import LOSS_DECOMPOSITIONS
from fuseflow.frontend.positions.ranking import ranked_along
from fuseflow.frontend.positions.selection_operators import (
    at_edges,
    entries_at,
    extreme_along,
    extreme_at_edges,
    linear_of_edges,
    multiplied_along,
    overwrite_along,
    placed,
    product_along,
    scores_at_edges,
    weighted_rows,
)
from fuseflow.frontend.positions.sparse_values import extreme_of_row
from fuseflow.frontend.trace.fx_origin import NO_GRADIENT, short_name, shown_operator
from fuseflow.frontend.trace.refusals import refusal

aten = torch.ops.aten


# Sparse operators -----------------------------------------------------------------------------------------------------


def _spmm_reduce(a: Tensor, b: Tensor, reduce: str, *_: Any) -> tuple[Tensor, None]:
    """Multiply and reduce. The mean runs over the pattern of `a`, where an explicitly stored zero counts in PyTorch and not here."""
    if reduce == "sum":
        return a @ b, None
    if reduce == "mean":
        return (a @ b) / (a != 0).to(b.dtype).sum(1, keepdim=True).clamp(min=1), None
    raise FrontendError(f"sparse matrix product with reduce='{reduce}' has no Einsum form", hint="use sum or mean")


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    """Multiply matrices or vectors. A vector is a matrix of one column or row, which gives one Einsum where PyTorch's decomposition
    gives two. One matrix for a whole batch is broadcast over the batch, where PyTorch's decomposition merges batch and rows."""
    if b.dim() == 1 and a.dim() <= 2:
        return _matmul(a, b.unsqueeze(1)).squeeze(-1)
    if a.dim() == 1 and b.dim() == 2:
        return torch.mm(a.unsqueeze(0), b).squeeze(0)
    if a.dim() == 3 and b.dim() == 2:
        return torch.bmm(a, b.expand(a.shape[0], *b.shape))
    return a @ b


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = _matmul(x, weight.t())
    return y if bias is None else y + bias


def _addmm(s: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    return added(s, a @ b, beta, alpha)


def _sampled_addmm(s: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    return added(s, _sparse_mask(a @ b, s), beta, alpha)


def _sparse_mask(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask != 0, x, 0.0)


# Own decompositions: they give fewer and simpler Einsums than PyTorch's ------------------------------------------------------


def _cosine(a: Tensor, b: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    return (a * b).sum(dim) / (_norm(a, 2, dim).clamp(min=eps) * _norm(b, 2, dim).clamp(min=eps))


def _truth_along(extreme: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `any` or `all`, which are the largest and the smallest of truth values as numbers."""

    def truth(x: Tensor, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
        return extreme((x != 0).to(torch.float32), list(range(x.dim())) if dim is None else dim, keepdim=keepdim) != 0

    return truth


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """Return half of x times one more than a function of it, as a difference: at -inf, a product with 0 would be 0 and not NaN."""
    half = -0.5 * x
    if approximate == "none":
        return half * torch.erf(x * -math.sqrt(0.5)) - half
    return half * torch.tanh(-math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))) - half


def _norm(x: Tensor, order: float | None = 2, dim: int | list[int] | None = None, keepdim: bool = False) -> Tensor:
    """Compute a norm with squares and magnitudes instead of powers of magnitudes."""
    dims = list(range(x.dim())) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    match 2 if order is None else order:
        case 2:
            return torch.sqrt((x * x).sum(dims, keepdim=keepdim))
        case 1:
            return x.abs().sum(dims, keepdim=keepdim)
        case math.inf:
            return x.abs().amax(dims, keepdim=keepdim)
    return aten.linalg_vector_norm(x, order, dims, keepdim)  # type: ignore[no-any-return]


def _weight_norm(direction: Tensor, length: Tensor, dim: int = 0) -> Tensor:
    """Scale slices along a dimension, or the whole tensor if it is -1, to these lengths."""
    dims = None if dim == -1 else [d for d in range(direction.dim()) if d != dim]
    return direction * (length / _norm(direction, 2, dims, keepdim=dim != -1))


def _leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x, x * slope)


def _power(x: Tensor, exponent: float) -> Tensor:
    """Compute a power with products and roots where that avoids `math.fpowi`."""
    match exponent:
        case 2:
            return x * x
        case 3:
            return x * x * x
        case 4:
            square = x * x
            return square * square
        case 0.5:
            return torch.sqrt(x)
        case -0.5:
            return torch.rsqrt(x)
        case -1:
            return 1 / x
    return torch.pow(x, exponent)


def _equal(a: Tensor, b: Tensor) -> Tensor:
    """Compare. torch-mlir takes a tensor for equal to itself, and NaN is not."""
    return torch.logical_not(a != a) if a is b and a.is_floating_point() else a == b


_LAYOUTS = ("to_dense", "to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "coalesce")
_STORED_OTHERWISE = (
    *(getattr(aten, f"{prefix}{name}").default for name in _LAYOUTS for prefix in ("", "_")),
    *(aten.to_sparse.sparse_dim, aten._to_sparse.sparse_dim),
)
"""Operators that change how a tensor is stored, and nothing else."""
DENSE_REPLACEMENTS: dict[object, Callable[..., Any]] = {
    **SLIDING_REPLACEMENTS,
    **RECURRENT_REPLACEMENTS,
    **IDENTITIES,
    aten._sparse_mm.default: operator.matmul,
    aten._sparse_mm.reduce: lambda a, b, reduce: _spmm_reduce(a, b, reduce)[0],
    aten._sparse_mm_reduce_impl.default: _spmm_reduce,
    aten._sparse_addmm.default: _addmm,
    aten.addmm.default: _addmm,
    aten._assert_tensor_metadata.default: lambda *_, **__: None,  # The layouts differ from the trace's.
    aten._sparse_sum.default: torch.sum,
    aten._sparse_sum.dtype: torch.sum,
    aten._sparse_sum.dim: torch.sum,
    aten._sparse_sum.dim_dtype: torch.sum,
    aten.sparse_sampled_addmm.default: _sampled_addmm,
    aten.sparse_mask.default: _sparse_mask,
    aten.linear.default: _linear,
    aten.matmul.default: _matmul,
    aten.mv.default: _matmul,
    aten.dot.default: _matmul,
    aten.reciprocal.default: lambda x: 1 / x,  # PyTorch's decomposition checks for zero with cf.assert.
    aten.pow.Tensor_Scalar: _power,
    aten.eq.Tensor: _equal,
    aten.tan.default: lambda x: torch.sin(x) / torch.cos(x),
    aten.leaky_relu.default: _leaky_relu,
    aten.leaky_relu_.default: _leaky_relu,
    aten.isinf.default: lambda x: x.abs() == math.inf,
    aten.detach_.default: aten.detach.default,  # A constant that a trace makes is no write.
    aten.view.default: torch.reshape,  # The strides of the trace come from other decompositions.
    **dict.fromkeys(_STORED_OTHERWISE, lambda x, *_, **__: x),
    # In training mode `refusals` has refused them.
    **dict.fromkeys((aten.dropout.default, aten.alpha_dropout.default, aten.feature_dropout.default), lambda x, *_: x),
}
"""Replacements of operators on sparse tensors, and decompositions that stay a single operator for the user."""

COMPOSITE_DECOMPOSITIONS: dict[object, tuple[str, Callable[..., Any]]] = {
    product_along: ("propagate", product_along),
    extreme_along: ("scatter", extreme_along),
    multiplied_along: ("scatter", multiplied_along),
    overwrite_along: ("scatter", overwrite_along),
    extreme_of_row: ("neighbours", extreme_of_row),
    placed: ("sparse", placed),
    entries_at: ("values", entries_at),
    ranked_along: ("rank", ranked_along),
    scanned_along: ("scan", scanned_along),
    masked: ("mask", masked),
    scores_where: ("mask", scores_where),
    **LOSS_DECOMPOSITIONS,
    at_edges: ("edges", at_edges),
    scores_at_edges: ("edges", scores_at_edges),
    extreme_at_edges: ("edges", extreme_at_edges),
    linear_of_edges: ("linear", linear_of_edges),
    weighted_rows: ("propagate", weighted_rows),
    aten.softmax.int: ("softmax", softmax),
    aten.log_softmax.int: ("log_softmax", log_softmax),
    aten._softmax.default: ("softmax", lambda x, dim, _: softmax(x, dim)),
    aten._safe_softmax.default: ("softmax", softmax),
    aten._log_softmax.default: ("log_softmax", lambda x, dim, _: log_softmax(x, dim)),
    aten.logsumexp.default: ("logsumexp", logsumexp),
    aten.layer_norm.default: ("layer_norm", layer_norm),
    aten.native_layer_norm.default: ("layer_norm", layer_norm_with_statistics),
    aten.rms_norm.default: ("rms_norm", rms_norm),
    aten.batch_norm.default: ("batch_norm", channel_norm([0])),
    aten.instance_norm.default: ("instance_norm", channel_norm([])),
    aten.group_norm.default: ("group_norm", group_norm),
    aten.native_group_norm.default: ("group_norm", group_norm_with_statistics),
    aten.cosine_similarity.default: ("cosine_similarity", _cosine),
    aten.hypot.default: ("hypot", lambda a, b: torch.sqrt(a * a + b * b)),
    aten.sinh.default: ("sinh", lambda x: (torch.exp(x) - torch.exp(-x)) * 0.5),
    aten.cosh.default: ("cosh", lambda x: (torch.exp(x) + torch.exp(-x)) * 0.5),
    **dict.fromkeys((aten.any.default, aten.any.dim, aten.any.dims), ("any", _truth_along(torch.amax))),
    **dict.fromkeys((aten.all.default, aten.all.dim, aten.all.dims), ("all", _truth_along(torch.amin))),
    aten.scaled_dot_product_attention.default: ("attention", attention),
    aten.gelu.default: ("gelu", _gelu),
    aten.linalg_vector_norm.default: ("norm", _norm),
    aten.norm.Scalar: ("norm", _norm),
    aten.norm.ScalarOpt_dim: ("norm", _norm),
    aten.linalg_norm.default: ("norm", _norm),
    aten._weight_norm.default: ("weight_norm", _weight_norm),
    aten.var.default: ("var", lambda x, unbiased=True: variance_along(x, None, unbiased)),
    aten.var.dim: ("var", lambda x, dim, unbiased=True, keepdim=False: variance_along(x, dim, unbiased, keepdim)),
    aten.var.correction: ("var", variance_along),
    aten.std.default: ("std", lambda x, unbiased=True: variance_along(x, None, unbiased).sqrt()),
    aten.std.dim: ("std", lambda x, dim, unbiased=True, keepdim=False: variance_along(x, dim, unbiased, keepdim).sqrt()),
    aten.var_mean.default: ("var_mean", lambda x, unbiased=True: (variance_along(x, None, unbiased), x.mean())),
    aten.var_mean.dim: (
        "var_mean",
        lambda x, dim, unbiased=True, keepdim=False: (variance_along(x, dim, unbiased, keepdim), x.mean(dim, keepdim)),
    ),
    aten.var_mean.correction: (
        "var_mean",
        lambda x, dim=None, correction=None, keepdim=False: (variance_along(x, dim, correction, keepdim), x.mean(dim, keepdim)),
    ),
    aten.std.correction: ("std", lambda x, dim=None, **options: variance_along(x, dim, **options).sqrt()),
}
"""Operators that become several Einsums. The name given here prefixes the names of these Einsums, as in `log_softmax.max`."""


def _overwrite(x: Tensor, source: Tensor, *_: Any) -> Tensor:
    """Copy to a tensor by operators that have a derivative where writes are replaced by new values."""
    content = source.clone()  # The source may be the tensor itself.
    return x.masked_fill_(torch.ones_like(x, dtype=torch.bool), 0).add_(content)


def named_operator(target: object) -> str:
    """Return the name of an operator of the user, which ends with a dot if it prefixes the names of several Einsums."""
    return f"{COMPOSITE_DECOMPOSITIONS[target][0]}." if target in COMPOSITE_DECOMPOSITIONS else short_name(target)


class DensifyingInterpreter(torch.fx.Interpreter):
    """An interpreter that runs calls of an exported graph with the replacements and annotates every resulting node with the operator
    that it comes from. In a training step (`trains`), all operators are differentiable. An operator without a dense form is added to
    `refusals`, and the run continues behind it, so that all refusals are found."""

    def __init__(self, graph_module: torch.fx.GraphModule, *, trains: bool = False) -> None:
        super().__init__(graph_module, garbage_collect_values=False)
        self._own = {aten.copy_.default: _overwrite} if trains else {}
        self.refusals: list[FrontendError] = []

    def run_calls(self, calls: Sequence[torch.fx.Node], operands: dict[torch.fx.Node, Any]) -> list[Any]:
        """Run some calls on the values of their operands, and return their values."""
        self.env = operands
        for node in calls:
            self.env[node] = self.run_node(node)
        return [self.env[node] for node in calls]

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _, function = COMPOSITE_DECOMPOSITIONS.get(target, ("", DENSE_REPLACEMENTS.get(target, self._own.get(target, target))))
        with annotate({"operator": named_operator(target)}):
            return super().call_function(function, args, kwargs)

    def run_node(self, node: torch.fx.Node) -> Any:
        try:
            result = super().run_node(node)
            if node.meta.get(NO_GRADIENT):
                result = pytree.tree_map_only(torch.Tensor, torch.detach, result)
            if result is not None or node.target is not operator.getitem or not node.users:
                return result
            # A replacement leaves it out, as it leaves out the positions of the largest elements.
            source = node.all_input_nodes[0]
            message = f"result {node.args[1]} of `{short_name(source.target)}` has no Einsum form; result 0 has one"
            refused = refusal(source, message, "use result 0 alone, or `argmax` or `topk` for positions")
        except FrontendError as error:
            refused = refusal(node, error.message, error.hint)
        except Exception as error:  # whatever PyTorch raises
            refused = refusal(node, f"`{shown_operator(node)}` has no form for these operands", HINT_OUTSIDE)
            refused.notes += (f"PyTorch says: {foreign_message(error)}",)
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise refused
        self.refusals.append(refused)
        return torch.zeros(value.shape, dtype=value.dtype)
