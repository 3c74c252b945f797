"""Operators as users write them, which become products with known matrices, comparisons and masks: what they give is what PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fuseflow as ff
from fuseflow.errors import FrontendError

torch.manual_seed(0)
X = torch.randn(3, 6)
PICTURE = torch.randn(1, 2, 5, 6)
SERIES = torch.randn(2, 3, 7)
CLASSES = torch.tensor([1, 2, 0])
TIES = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])


def every_other(x: Tensor, z: Tensor) -> Tensor:
    y = x * 1
    y[:, ::2] = z
    return y


def in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[0, :] *= 2
    y[1:, 2:4] += 1
    return y


MODELS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "cumsum": (lambda x: x.cumsum(1), (X,)),
    "cumsum of columns": (lambda x: torch.cumsum(x, dim=0), (X,)),
    "diff": (lambda x: x.diff(dim=1), (X,)),
    "nearest": (lambda x: functional.interpolate(x, scale_factor=2), (PICTURE,)),
    "bilinear up": (lambda x: functional.interpolate(x, size=(8, 9), mode="bilinear"), (PICTURE,)),
    "aligned": (lambda x: functional.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=True), (PICTURE,)),
    "bicubic": (lambda x: functional.interpolate(x, size=(7, 8), mode="bicubic"), (PICTURE,)),
    "linear up": (lambda x: functional.interpolate(x, scale_factor=2, mode="linear"), (SERIES,)),
    "adaptive": (lambda x: functional.adaptive_avg_pool2d(x, (2, 4)), (PICTURE,)),
    "adaptive series": (lambda x: functional.adaptive_avg_pool1d(x, 3), (SERIES,)),
    "topk": (lambda x: torch.topk(x, 2, dim=1), (X,)),
    "smallest": (lambda x: torch.topk(x, 2, dim=0, largest=False)[0], (X,)),
    "sort": (lambda x: torch.sort(x, dim=1, descending=True), (X,)),
    "stable sort": (lambda x: torch.sort(x, dim=1, stable=True), (TIES,)),
    "argsort": (lambda x: torch.argsort(x, dim=1), (X,)),
    "argmax": (lambda x: x.argmax(1), (TIES,)),
    "row at a computed position": (lambda x: x[x.sum(1).argmax()], (X,)),
    "row at a given position": (lambda x, i: x[i.max()] * 2, (X, CLASSES)),
    "argmin": (lambda x: x.argmin(0, keepdim=True), (X,)),
    "max": (lambda x: x.max(1), (TIES,)),
    "min": (lambda x: torch.min(x, dim=0, keepdim=True), (X,)),
    "bilinear": (nn.Bilinear(6, 6, 4), (X, X + 1)),
    "cdist": (torch.cdist, (X, X * 2)),
    "cdist of magnitudes": (lambda x, y: torch.cdist(x, y, p=1), (X, X * 2)),
    "pairwise": (lambda x, y: functional.pairwise_distance(x, y), (X, X * 2)),
    "instance norm": (nn.InstanceNorm2d(2), (PICTURE,)),
    "instance norm with weights": (nn.InstanceNorm1d(3, affine=True), (SERIES,)),
    "batch norm of the batch": (nn.BatchNorm1d(6, track_running_stats=False), (X,)),
    "cross entropy": (functional.cross_entropy, (X, CLASSES)),
    "cross entropy of each": (lambda x, t: functional.cross_entropy(x, t, reduction="none"), (X, CLASSES)),
    "cross entropy without a class": (lambda x, t: functional.cross_entropy(x, t, ignore_index=2), (X, CLASSES)),
    "weighted": (lambda x, t, w: functional.cross_entropy(x, t, weight=w), (X, CLASSES, torch.rand(6))),
    "weighted sum": (lambda x, t, w: functional.nll_loss(x, t, weight=w, reduction="sum"), (X, CLASSES, torch.rand(6))),
    "binary cross entropy": (functional.binary_cross_entropy_with_logits, (X, torch.rand(3, 6))),
    "divergence": (lambda x, y: functional.kl_div(x, y, reduction="batchmean"), (X.log_softmax(1), X.softmax(0))),
    "windows": (lambda x: functional.unfold(x, 3, padding=1, stride=2), (PICTURE,)),
    "windows with gaps": (lambda x: functional.unfold(x, (2, 3), dilation=(2, 1)), (PICTURE,)),
    "diagonal": (lambda x: torch.diagonal(x, 1, -1, -2), (SERIES,)),
    "diag of a matrix": (lambda x: torch.diag(x[:, :3]), (X,)),
    "diag of a vector": (lambda x: torch.diag(x[0]), (X,)),
    "diag_embed": (lambda x: torch.diag_embed(x), (X,)),
    "trace": (lambda x: torch.trace(x[:, :3]), (X,)),
    "tril": (lambda x: torch.tril(x, -1), (X,)),
    "triu": (lambda x: torch.triu(x, 1), (SERIES,)),
    "write to every other column": (every_other, (X, torch.randn(3, 3))),
    "write in place": (in_place, (X,)),
    "slice_scatter": (lambda x, z: torch.slice_scatter(x, z, 1, 2, 4), (X, torch.randn(3, 2))),
    "select_scatter": (lambda x, z: x.select_scatter(z, 0, 1), (X, torch.randn(6))),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_operator_gives_what_pytorch_gives(name: str) -> None:
    model, inputs = MODELS[name]
    run = ff.compile(model, inputs, schedule=ff.Schedule.fuse("full")).run()
    assert run.check is not None and run.check.passed
    results = model(*inputs)
    assert len(run.outputs) == (1 if isinstance(results, Tensor) else len(results))


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (lambda x, t: functional.multi_margin_loss(x, t), (X, CLASSES), "multi_margin_loss"),
        (nn.InstanceNorm2d(2, track_running_stats=True), (PICTURE,), "statistics of the input"),
        (nn.BatchNorm1d(6), (X,), "statistics of the batch"),
    ],
)
def test_what_has_no_form_is_refused(model: Callable[..., Any], inputs: tuple[Tensor, ...], message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        ff.compile(model, inputs)
