"""Gradients of a call of each operator, as a training step has them, beside those of PyTorch.

The loss is the sum of squared distances from a target, and the interpreter computes the gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from gradient_checks import verdict
from torch import Tensor, nn

Shape = tuple[int, ...]
CLASSES = torch.tensor([2, 0, 1, 4])
ROWS = torch.tensor([3, 0, 3, 1])
PLACES = torch.tensor([[0, 2, 1], [3, 3, 0]])
TARGETS = torch.randn(4, 5, generator=torch.Generator().manual_seed(8))
SHARES = torch.softmax(TARGETS, -1)
WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 0.1, 1.5])
MASK = torch.tensor([[True, False, True, False, True]] * 4)
TRIANGLE = torch.ones(4, 4, dtype=torch.bool).tril()


@dataclass(frozen=True)
class Call:
    """A function of tensors of these shapes. If `positive`, all of their entries are above 0.1."""

    function: Callable[..., Tensor]
    shapes: tuple[Shape, ...]
    positive: bool = False

    def module(self) -> nn.Module:
        """The module of the call, whose parameters are the tensors."""
        generator = torch.Generator().manual_seed(3)
        tensors = [torch.randn(shape, generator=generator) for shape in self.shapes]
        return _Module(self.function, [tensor.abs() + 0.1 if self.positive else tensor for tensor in tensors])


class _Module(nn.Module):
    def __init__(self, function: Callable[..., Tensor], tensors: list[Tensor]) -> None:
        super().__init__()
        self.function = function
        self.tensors = nn.ParameterList(nn.Parameter(tensor) for tensor in tensors)

    def forward(self, one: Tensor) -> Tensor:
        return self.function(*self.tensors) * one


def of(function: Any, *shapes: Shape) -> Call:
    return Call(function, shapes or ((4, 5),))


def above_0(function: Any, *shapes: Shape) -> Call:
    return Call(function, shapes or ((4, 5),), positive=True)


POINTWISE = {
    "relu": of(torch.relu),
    "relu6": of(F.relu6),
    "leaky_relu": of(lambda x: F.leaky_relu(x, 0.2)),
    "elu": of(F.elu),
    "celu": of(F.celu),
    "selu": of(F.selu),
    "gelu": of(F.gelu),
    "gelu_tanh": of(lambda x: F.gelu(x, approximate="tanh")),
    "silu": of(F.silu),
    "mish": of(F.mish),
    "softplus": of(lambda x: F.softplus(x, beta=2.0, threshold=1.0)),
    "softsign": of(F.softsign),
    "hardtanh": of(F.hardtanh),
    "hardswish": of(F.hardswish),
    "hardsigmoid": of(F.hardsigmoid),
    "hardshrink": of(F.hardshrink),
    "softshrink": of(F.softshrink),
    "tanhshrink": of(F.tanhshrink),
    "threshold": of(lambda x: F.threshold(x, 0.1, 2.0)),
    "logsigmoid": of(F.logsigmoid),
    "glu": of(F.glu, (4, 6)),
    "prelu": of(F.prelu, (4, 5), (5,)),
    "sigmoid": of(torch.sigmoid),
    "tanh": of(torch.tanh),
    "exp": of(torch.exp),
    "expm1": of(torch.expm1),
    "log": above_0(torch.log),
    "log1p": above_0(torch.log1p),
    "log2": above_0(torch.log2),
    "sqrt": above_0(torch.sqrt),
    "rsqrt": above_0(torch.rsqrt),
    "reciprocal": above_0(torch.reciprocal),
    "sin": of(torch.sin),
    "cos": of(torch.cos),
    "tan": of(torch.tan),
    "sinh": of(torch.sinh),
    "cosh": of(torch.cosh),
    "atan": of(torch.atan),
    "asinh": of(torch.asinh),
    "acos": of(lambda x: torch.acos(torch.tanh(x))),
    "asin": of(lambda x: torch.asin(torch.tanh(x))),
    "atanh": of(lambda x: torch.atanh(0.9 * torch.tanh(x))),
    "acosh": above_0(lambda x: torch.acosh(x + 1)),
    "erf": of(torch.erf),
    "erfc": of(torch.erfc),
    "abs": of(torch.abs),
    "neg": of(torch.neg),
    "square": of(torch.square),
    "pow_3": of(lambda x: x**3),
    "pow_half": above_0(lambda x: x**0.5),
    "pow_tensor": Call(torch.pow, ((4, 5), (4, 5)), True),
    "pow_of_number": of(lambda x: 2.0**x),
    "atan2": of(torch.atan2, (4, 5), (4, 5)),
    "hypot": of(torch.hypot, (4, 5), (4, 5)),
    "fmod": of(lambda x: torch.fmod(x, 0.7)),
    "remainder": of(lambda x: torch.remainder(x, 0.7)),
    "frac": of(torch.frac),
    "exp2": of(torch.exp2),
    "logaddexp": of(torch.logaddexp, (4, 5), (4, 5)),
    "xlogy": Call(torch.xlogy, ((4, 5), (4, 5)), True),
    "sinc": of(torch.sinc),
    "add_broadcast": of(torch.add, (4, 5), (5,)),
    "sub_alpha": of(lambda x, y: torch.sub(x, y, alpha=2), (4, 5), (4, 1)),
    "mul_broadcast": of(torch.mul, (4, 5), (4, 1)),
    "div": Call(torch.div, ((4, 5), (5,)), True),
    "lerp": of(lambda x, y: torch.lerp(x, y, 0.3), (4, 5), (4, 5)),
    "addcmul": of(lambda x, y, z: torch.addcmul(x, y, z, value=0.5), (4, 5), (4, 5), (4, 5)),
    "addcdiv": Call(torch.addcdiv, ((4, 5), (4, 5), (4, 5)), True),
    "logit": of(lambda x: torch.logit(torch.sigmoid(x))),
}
CHOICES = {
    "where": of(lambda x, y: torch.where(x > y, x, y * 2), (4, 5), (4, 5)),
    "clamp": of(lambda x: x.clamp(-0.5, 0.5)),
    "clamp_min": of(lambda x: x.clamp_min(0.1)),
    "clamp_tensor": of(lambda x, y: torch.clamp(x, min=y), (4, 5), (5,)),
    "maximum": of(torch.maximum, (4, 5), (4, 5)),
    "minimum": of(torch.minimum, (4, 5), (4, 5)),
    "maximum_of_equals": of(lambda x, y: torch.maximum(x, y * 0 + x), (4, 5), (4, 5)),
    "masked_fill": of(lambda x: x.masked_fill(MASK, 3.0)),
    "fmax": of(torch.fmax, (4, 5), (4, 5)),
    "tril": of(torch.tril),
    "triu": of(lambda x: torch.triu(x, 1)),
    "sign": of(lambda x: torch.sign(x) * x),
    "round": of(lambda x: x * torch.round(x)),
    "nan_to_num": of(torch.nan_to_num),
    "dropout_0": of(lambda x: F.dropout(x, 0.0)),
}
REDUCTIONS = {
    "sum": of(torch.sum),
    "sum_dim": of(lambda x: x.sum(0)),
    "sum_keepdim": of(lambda x: x.sum((0, 2), keepdim=True), (2, 3, 4)),
    "mean": of(torch.mean),
    "mean_dim": of(lambda x: x.mean(1)),
    "var": of(lambda x: x.var(1)),
    "var_all": of(torch.var),
    "var_biased": of(lambda x: torch.var(x, 0, correction=0)),
    "std": of(lambda x: x.std(1)),
    "std_keepdim": of(lambda x: x.std(0, keepdim=True)),
    "norm": of(torch.norm),
    "norm_1": of(lambda x: x.norm(p=1, dim=1)),
    "norm_3": of(lambda x: x.norm(p=3, dim=1)),
    "norm_inf": of(lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1)),
    "vector_norm": of(lambda x: torch.linalg.vector_norm(x, dim=1, keepdim=True)),
    "normalize": of(lambda x: F.normalize(x, dim=1)),
    "normalize_1": of(lambda x: F.normalize(x, p=1.0, dim=0)),
    "amax": of(lambda x: x.amax(1)),
    "amax_of_equals": of(lambda x: x.round().amax(1) + 0 * x.sum()),
    "amin": of(lambda x: x.amin((0, 1)), (3, 4, 2)),
    "max": of(torch.max),
    "min": of(torch.min),
    "max_dim": of(lambda x: x.max(1).values),
    "max_of_equals": of(lambda x: torch.relu(x - 0.5).max(1).values),
    "min_dim": of(lambda x: x.min(0).values),
    "prod": of(torch.prod),
    "prod_dim": of(lambda x: x.prod(1)),
    "cumsum": of(lambda x: x.cumsum(1)),
    "cumprod": of(lambda x: x.cumprod(1)),
    "logsumexp": of(lambda x: x.logsumexp(1)),
    "logcumsumexp": of(lambda x: x.logcumsumexp(1)),
    "median": of(lambda x: x.median(1).values),
    "topk": of(lambda x: x.topk(2, 1).values),
    "sort": of(lambda x: x.sort(1).values),
    "nansum": of(torch.nansum),
    "trace": of(torch.trace, (4, 4)),
    "cosine_similarity": of(lambda x, y: F.cosine_similarity(x, y, dim=1), (4, 5), (4, 5)),
    "pairwise_distance": of(F.pairwise_distance, (4, 5), (4, 5)),
    "cdist": of(torch.cdist, (4, 5), (3, 5)),
    "std_mean": of(lambda x: torch.std_mean(x, 1)[0] + torch.std_mean(x, 1)[1]),
}
SOFTMAXES = {
    "softmax": of(lambda x: x.softmax(1)),
    "softmax_0": of(lambda x: x.softmax(0), (3, 4, 2)),
    "log_softmax": of(lambda x: x.log_softmax(-1)),
    "softmin": of(lambda x: F.softmin(x, dim=1)),
    "softmax_masked": of(lambda x: x.masked_fill(~TRIANGLE, float("-inf")).softmax(-1), (2, 4, 4)),
    "gumbel_free": of(lambda x: (x / 0.5).softmax(-1)),
    "attention": of(F.scaled_dot_product_attention, (2, 4, 3), (2, 4, 3), (2, 4, 3)),
    "attention_causal": of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 4, 3), (2, 4, 3), (2, 4, 3)
    ),
    "attention_mask": of(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=TRIANGLE), (2, 4, 3), (2, 4, 3), (2, 4, 3)
    ),
}
NORMS = {
    "layer_norm": of(lambda x, w, b: F.layer_norm(x, (5,), w, b), (4, 5), (5,), (5,)),
    "layer_norm_2": of(lambda x: F.layer_norm(x, (3, 4)), (2, 3, 4)),
    "rms_norm": of(lambda x, w: F.rms_norm(x, (5,), w), (4, 5), (5,)),
    "group_norm": of(lambda x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,)),
    "instance_norm": of(lambda x: F.instance_norm(x), (2, 3, 5)),
    "instance_norm_affine": of(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), (2, 3, 5), (3,), (3,)),
    "batch_norm_training": of(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (6, 3), (3,), (3,)),
    "batch_norm_training_3": of(lambda x: F.batch_norm(x, None, None, training=True), (3, 2, 4)),
    "batch_norm": of(lambda x, w, b: F.batch_norm(x, torch.arange(3.0), torch.arange(1.0, 4.0), w, b), (6, 3), (3,), (3,)),
    "weight_norm": of(lambda v, g: torch._weight_norm(v, g, 0), (4, 5), (4, 1)),
    "weight_norm_last": of(lambda v, g: torch._weight_norm(v, g, 2), (3, 2, 4), (1, 1, 4)),
    "weight_norm_whole": of(lambda v, g: torch._weight_norm(v, g, -1), (4, 5), ()),
    "local_response_norm": of(lambda x: F.local_response_norm(x, 3), (2, 4, 5)),
}
LOSSES = {
    "cross_entropy": of(lambda x: F.cross_entropy(x, CLASSES)),
    "cross_entropy_smoothed": of(lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.2)),
    "cross_entropy_weights": of(lambda x: F.cross_entropy(x, CLASSES, weight=WEIGHTS)),
    "cross_entropy_ignored": of(lambda x: F.cross_entropy(x, CLASSES, ignore_index=4)),
    "cross_entropy_soft": of(lambda x: F.cross_entropy(x, SHARES)),
    "cross_entropy_none": of(lambda x: F.cross_entropy(x, CLASSES, reduction="none")),
    "cross_entropy_places": of(lambda x: F.cross_entropy(x, PLACES), (2, 5, 3)),
    "nll_loss": of(lambda x: F.nll_loss(x, CLASSES, reduction="sum")),
    "nll_loss_weights": of(lambda x: F.nll_loss(x, CLASSES, WEIGHTS)),
    "mse_loss": of(lambda x: F.mse_loss(x, TARGETS)),
    "l1_loss": of(lambda x: F.l1_loss(x, TARGETS)),
    "smooth_l1_loss": of(lambda x: F.smooth_l1_loss(x, TARGETS, beta=0.7)),
    "huber_loss": of(lambda x: F.huber_loss(x, TARGETS, delta=0.5)),
    "bce": of(lambda x: F.binary_cross_entropy(torch.sigmoid(x), SHARES)),
    "bce_weight": of(lambda x: F.binary_cross_entropy(torch.sigmoid(x), SHARES, WEIGHTS)),
    "bce_with_logits": of(lambda x: F.binary_cross_entropy_with_logits(x, SHARES)),
    "bce_with_logits_pos": of(lambda x: F.binary_cross_entropy_with_logits(x, SHARES, pos_weight=WEIGHTS)),
    "bce_with_logits_of_0": of(lambda x: F.binary_cross_entropy_with_logits(torch.relu(x), SHARES)),
    "kl_div": of(lambda x: F.kl_div(x, SHARES, reduction="batchmean")),
    "kl_div_log": of(lambda x: F.kl_div(x, TARGETS, log_target=True)),
    "poisson_nll": of(lambda x: F.poisson_nll_loss(x, SHARES)),
    "gaussian_nll": above_0(lambda x, v: F.gaussian_nll_loss(x, TARGETS, v), (4, 5), (4, 5)),
    "hinge_embedding": of(lambda x: F.hinge_embedding_loss(x, torch.sign(TARGETS))),
    "margin_ranking": of(lambda x, y: F.margin_ranking_loss(x, y, torch.sign(TARGETS), margin=0.3), (4, 5), (4, 5)),
    "soft_margin": of(lambda x: F.soft_margin_loss(x, torch.sign(TARGETS))),
    "triplet": of(F.triplet_margin_loss, (4, 5), (4, 5), (4, 5)),
    "cosine_embedding": of(lambda x, y: F.cosine_embedding_loss(x, y, torch.sign(TARGETS[:, 0])), (4, 5), (4, 5)),
    "multilabel_soft_margin": of(lambda x: F.multilabel_soft_margin_loss(x, (SHARES > 0.2).float())),
    "multi_margin": of(lambda x: F.multi_margin_loss(x, CLASSES)),
}
PRODUCTS = {
    "matmul": of(torch.matmul, (4, 5), (5, 3)),
    "matmul_batched": of(torch.matmul, (2, 4, 5), (2, 5, 3)),
    "matmul_broadcast": of(torch.matmul, (2, 4, 5), (5, 3)),
    "mv": of(torch.mv, (4, 5), (5,)),
    "vm": of(torch.matmul, (4,), (4, 5)),
    "dot": of(torch.dot, (5,), (5,)),
    "outer": of(torch.outer, (4,), (5,)),
    "bmm": of(torch.bmm, (2, 4, 5), (2, 5, 3)),
    "addmm": of(lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), (3,), (4, 5), (5, 3)),
    "baddbmm": of(torch.baddbmm, (2, 4, 3), (2, 4, 5), (2, 5, 3)),
    "linear": of(F.linear, (2, 4, 5), (3, 5), (3,)),
    "bilinear": of(F.bilinear, (4, 5), (4, 3), (2, 5, 3), (2,)),
    "einsum": of(lambda x, y: torch.einsum("bij,bkj->bik", x, y), (2, 4, 5), (2, 3, 5)),
    "einsum_trace": of(lambda x: torch.einsum("bii->b", x), (2, 4, 4)),
    "tensordot": of(lambda x, y: torch.tensordot(x, y, 2), (2, 4, 5), (4, 5, 3)),
    "kron": of(torch.kron, (2, 3), (3, 2)),
    "matrix_power": of(lambda x: torch.linalg.matrix_power(x, 3), (4, 4)),
    "cross": of(torch.linalg.cross, (4, 3), (4, 3)),
    "chain": of(lambda x, y, z: torch.linalg.multi_dot([x, y, z]), (2, 3), (3, 4), (4, 2)),
}
CONVOLUTIONS = {
    "conv1d": of(F.conv1d, (2, 3, 7), (4, 3, 3), (4,)),
    "conv1d_options": of(lambda x, w: F.conv1d(x, w, stride=2, padding=2, dilation=2), (2, 3, 9), (4, 3, 3)),
    "conv1d_groups": of(lambda x, w: F.conv1d(x, w, groups=2), (2, 4, 7), (4, 2, 3)),
    "conv1d_depthwise": of(lambda x, w: F.conv1d(x, w, padding=2, groups=3), (2, 3, 7), (3, 1, 3)),
    "conv1d_same": of(lambda x, w: F.conv1d(x, w, padding="same"), (2, 3, 7), (4, 3, 3)),
    "conv2d": of(F.conv2d, (2, 3, 5, 6), (4, 3, 3, 2), (4,)),
    "conv2d_options": of(lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=(1, 2)), (2, 3, 6, 7), (4, 3, 3, 2)),
    "conv2d_groups": of(lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=2), (2, 4, 5, 5), (6, 2, 3, 3), (6,)),
    "conv2d_patches": of(lambda x, w: F.conv2d(x, w, stride=2), (2, 3, 4, 6), (5, 3, 2, 2)),
    "conv2d_1": of(F.conv2d, (2, 3, 4, 4), (5, 3, 1, 1)),
    "conv3d": of(F.conv3d, (1, 2, 4, 3, 3), (2, 2, 2, 2, 2)),
    "conv_transpose1d": of(lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1), (2, 3, 5), (3, 4, 3)),
    "conv_transpose2d": of(
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, output_padding=1, padding=1), (1, 3, 3, 4), (3, 2, 3, 3), (2,)
    ),
    "unfold": of(lambda x: F.unfold(x, 2, padding=1), (1, 2, 3, 4)),
    "fold": of(lambda x: F.fold(x, (4, 4), 2), (1, 8, 9)),
    "unfold_tensor": of(lambda x: x.unfold(1, 3, 2), (2, 7)),
    "avg_pool1d": of(lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 7)),
    "avg_pool2d": of(lambda x: F.avg_pool2d(x, 2), (2, 3, 5, 6)),
    "avg_pool2d_options": of(lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 3, 5, 6)),
    "max_pool1d": of(lambda x: F.max_pool1d(x, 3, 2), (2, 3, 7)),
    "max_pool2d": of(lambda x: F.max_pool2d(x, 2), (2, 3, 4, 6)),
    "max_pool2d_options": of(lambda x: F.max_pool2d(x, 3, 2, 1), (2, 3, 5, 6)),
    "max_pool2d_equal": of(lambda x: F.max_pool2d(torch.relu(x - 0.5), 2), (2, 3, 4, 6)),
    "adaptive_avg_pool1d": of(lambda x: F.adaptive_avg_pool1d(x, 3), (2, 3, 7)),
    "adaptive_avg_pool2d": of(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 3, 4, 6)),
    "adaptive_max_pool2d": of(lambda x: F.adaptive_max_pool2d(x, (2, 3)), (2, 3, 4, 6)),
    "lp_pool2d": above_0(lambda x: F.lp_pool2d(x, 2.0, 2), (2, 3, 4, 6)),
    "interpolate_nearest": of(lambda x: F.interpolate(x, scale_factor=2), (1, 2, 3, 4)),
    "interpolate_bilinear": of(lambda x: F.interpolate(x, size=(5, 6), mode="bilinear"), (1, 2, 3, 4)),
    "interpolate_linear": of(lambda x: F.interpolate(x, size=7, mode="linear"), (1, 2, 4)),
    "pixel_shuffle": of(lambda x: F.pixel_shuffle(x, 2), (1, 8, 2, 3)),
}
PLACED = {
    "index": of(lambda x: x[ROWS]),
    "index_2": of(lambda x: x[ROWS, CLASSES]),
    "index_column": of(lambda x: x[:, ROWS]),
    "index_mask": of(lambda x: x[MASK]),
    "index_select": of(lambda x: x.index_select(1, ROWS)),
    "gather": of(lambda x: x.gather(1, torch.tensor([[0, 2, 2], [1, 1, 0], [4, 3, 0], [2, 2, 2]]))),
    "take": of(lambda x: x.take(torch.tensor([0, 7, 7, 19]))),
    "take_along_dim": of(lambda x: x.take_along_dim(CLASSES[:, None], 1)),
    "embedding": of(lambda w: F.embedding(PLACES, w)),
    "embedding_padding": of(lambda w: F.embedding(PLACES, w, padding_idx=3)),
    "embedding_bag": of(lambda w: F.embedding_bag(PLACES, w, mode="mean")),
    "embedding_bag_sum": of(lambda w: F.embedding_bag(PLACES, w, mode="sum")),
    "embedding_bag_max": of(lambda w: F.embedding_bag(PLACES, w, mode="max")),
    "embedding_bag_weights": of(lambda w, s: F.embedding_bag(PLACES, w, mode="sum", per_sample_weights=s), (4, 5), (2, 3)),
    "embedding_bag_offsets": of(lambda w: F.embedding_bag(PLACES.flatten(), w, torch.tensor([0, 2]), mode="mean")),
    "scatter": of(lambda x, s: x.scatter(1, torch.tensor([[0, 2], [1, 3], [4, 0], [1, 2]]), s), (4, 5), (4, 2)),
    "scatter_add": of(lambda x, s: x.scatter_add(0, torch.tensor([[0, 1, 1, 2, 3]] * 2), s), (4, 5), (2, 5)),
    "index_add": of(lambda x, s: x.index_add(0, ROWS, s), (4, 5), (4, 5)),
    "index_copy": of(lambda x, s: x.index_copy(0, torch.tensor([2, 0]), s), (4, 5), (2, 5)),
    "index_put": of(lambda x, s: x.index_put((torch.tensor([2, 0]),), s), (4, 5), (2, 5)),
    "index_put_accumulate": of(lambda x, s: x.index_put((ROWS,), s, accumulate=True), (4, 5), (4, 5)),
    "index_fill": of(lambda x: x.index_fill(0, torch.tensor([2, 0]), 3.0)),
    "scatter_reduce_mean": of(
        lambda x, s: x.scatter_reduce(0, ROWS[:, None].expand(4, 5), s, "mean", include_self=False), (4, 5), (4, 5)
    ),
    "scatter_reduce_amax": of(
        lambda x, s: x.scatter_reduce(0, ROWS[:, None].expand(4, 5), s, "amax", include_self=False), (4, 5), (4, 5)
    ),
    "masked_scatter_free": of(lambda x, y: torch.where(MASK, x, y), (4, 5), (4, 5)),
    "slice": of(lambda x: x[1:, :3]),
    "slice_step": of(lambda x: x[::2, 1::2]),
    "select": of(lambda x: x[:, 2]),
    "narrow": of(lambda x: x.narrow(1, 1, 3)),
    "select_write": of(lambda x, y: _written(x, y), (4, 5), (5,)),
    "slice_write": of(lambda x, y: torch.slice_scatter(x, y, 1, 1, 4), (4, 5), (4, 3)),
    "slice_in_place": of(lambda x, y: _slice_in_place(x, y), (4, 5), (4, 3)),
    "relu_in_place": of(lambda x: (x * 2).relu_().exp()),
    "sum_in_place": of(lambda x, y: F.hardtanh_((x * 2).add_(y)) * y, (4, 5), (4, 5)),
    "diagonal": of(torch.diagonal, (4, 4)),
    "diag_embed": of(torch.diag_embed, (3, 4)),
    "diag": of(torch.diag, (4,)),
    "cat": of(lambda x, y: torch.cat([x, y], 1), (4, 5), (4, 2)),
    "stack": of(lambda x, y: torch.stack([x, y], 1), (4, 5), (4, 5)),
    "pad": of(lambda x: F.pad(x, (1, 2, 0, 1))),
    "pad_value": of(lambda x: F.pad(x, (1, 2), value=2.0)),
    "pad_reflect": of(lambda x: F.pad(x, (2, 1), mode="reflect"), (1, 2, 5)),
    "pad_replicate": of(lambda x: F.pad(x, (2, 1), mode="replicate"), (1, 2, 5)),
    "pad_circular": of(lambda x: F.pad(x, (2, 1), mode="circular"), (1, 2, 5)),
    "pad_cut": of(lambda x: F.pad(x, (-1, 1))),
    "roll": of(lambda x: x.roll(2, 1)),
    "roll_2": of(lambda x: x.roll((1, -1), (0, 1))),
    "flip": of(lambda x: x.flip(0, 1)),
    "rot90": of(lambda x: torch.rot90(x)),
    "repeat": of(lambda x: x.repeat(2, 3)),
    "repeat_interleave": of(lambda x: x.repeat_interleave(2, 1)),
    "tile": of(lambda x: x.tile((2, 1))),
    "expand": of(lambda x: x.expand(3, 4, 5)),
    "reshape": of(lambda x: x.reshape(2, 10)),
    "view": of(lambda x: x.view(-1, 2)),
    "flatten": of(lambda x: x.flatten(1), (2, 3, 4)),
    "transpose": of(lambda x: x.t()),
    "permute": of(lambda x: x.permute(2, 0, 1), (2, 3, 4)),
    "movedim": of(lambda x: x.movedim(0, -1), (2, 3, 4)),
    "squeeze": of(lambda x: x[None].squeeze(0)),
    "unbind": of(lambda x: x.unbind(0)[1] * x.unbind(0)[0]),
    "split": of(lambda x: x.split([2, 3], 1)[0].sum(1, keepdim=True) * x.split([2, 3], 1)[1]),
    "chunk": of(lambda x: x.chunk(2, 0)[0] * x.chunk(2, 0)[1]),
    "heads": of(lambda x: x.view(4, 2, 3).transpose(0, 1), (4, 6)),
    "meshgrid": of(lambda x, y: torch.meshgrid(x, y, indexing="ij")[0] * torch.meshgrid(x, y, indexing="ij")[1], (4,), (5,)),
    "block_diag": of(torch.block_diag, (2, 3), (1, 2)),
}


def _written(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z[1] = y
    return z


def _slice_in_place(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z[:, 1:4] *= y
    return z


CALLS: dict[str, Call] = {
    **POINTWISE,
    **CHOICES,
    **REDUCTIONS,
    **SOFTMAXES,
    **NORMS,
    **LOSSES,
    **PRODUCTS,
    **CONVOLUTIONS,
    **PLACED,
}
"""All calls by name."""


REFUSED = {
    "acos": "`acos` has no Einsum form",
    "asin": "`asin` has no Einsum form",
    "atan": "`atan` has no Einsum form",
    "atan2": "`atan2` has no Einsum form",
    "std_mean": "`std_mean`, through `aten.var_mean.correction`, has no Einsum form",
    "gaussian_nll": "a Python number is taken out of a tensor",
    "multi_margin": "`multi_margin_loss`, through `aten.gather.default`, has no Einsum form",
    "einsum_trace": "`einsum`, through `aten.diagonal.default`, has no Einsum form",
    "index_fill": "indexing by a tensor (`aten.index_fill.int_Scalar`)",
    "scatter_reduce_mean": "indexing by a tensor (`aten.scatter_reduce.two`)",
}
"""The calls that no model may have, trained or not, and the beginning of what is said of them."""
FAST = [
    "gelu",
    "maximum_of_equals",
    "max_of_equals",
    "std_keepdim",
    "softmax_masked",
    "layer_norm",
    "batch_norm_training",
    "cross_entropy_weights",
    "conv2d_options",
    "conv_transpose1d",
    "max_pool2d_equal",
    "embedding_padding",
    "embedding_bag",
    "index_mask",
    "scatter_add",
    "slice_in_place",
    "relu_in_place",
    "weight_norm",
]
"""The calls that are tested in every run. The others take minutes together."""
ONE = torch.ones(())


def gradient_verdict(name: str) -> tuple[str, str]:
    module = CALLS[name].module()
    target = torch.randn(module(ONE).shape, generator=torch.Generator().manual_seed(7))
    return verdict(module, (ONE,), None, target)


def test_the_list_has_calls_of_every_family() -> None:
    assert len(CALLS) - len(REFUSED) >= 270 and CALLS.keys() >= {*REFUSED, *FAST}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in FAST)) for name in CALLS if name not in REFUSED]
)
def test_the_gradients_of_an_operator_are_those_of_pytorch(name: str) -> None:
    assert gradient_verdict(name) == ("right", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_the_gradients_of_an_operator_are_refused(name: str) -> None:
    kind, reason = gradient_verdict(name)
    assert kind == "refused" and reason.startswith(REFUSED[name])
