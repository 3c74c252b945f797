"""Operators that are formulas of others, scans, windows that are cut, the largest neighbours: each gives what PyTorch gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import FrontendError

GENERATOR = torch.Generator().manual_seed(3)
X = torch.randn(4, 6, generator=GENERATOR)
Y = torch.randn(4, 6, generator=GENERATOR)
P = torch.rand(4, 6, generator=GENERATOR) * 0.8 + 0.1
PIXELS = torch.tensor([[[0, 1], [2, 0]], [[1, 1], [2, 0]]])
CLASSES = torch.tensor([1, 5, 0, 3])
PICTURE = torch.randn(2, 3, 7, 8, generator=GENERATOR)
HOLES = torch.where(P > 0.6, float("nan"), X)
NEIGHBOURS = torch.sparse_csr_tensor([0, 2, 2, 5, 6], [0, 2, 1, 2, 3, 3], [1.0, -2.0, 0.0, 3.0, -1.0, 2.0], (4, 4))


def written(x: Tensor) -> Tensor:
    y = x.clone()
    y[y < 0] = 0.5
    return y


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "remainder": (lambda x, y: torch.remainder(x, y) + torch.fmod(x, y), (X, P)),
    "copysign": (torch.copysign, (X, Y)),
    "xlogy": (torch.xlogy, (torch.relu(X), P)),
    "erfc": (torch.erfc, (X,)),
    "area functions": (lambda p: torch.asinh(p - 0.5) + torch.acosh(1 + p) + torch.atanh(p), (P,)),
    "logaddexp": (torch.logaddexp, (X, Y)),
    "fmax": (lambda x, y: torch.fmax(x, y) - torch.fmin(x, y), (X, Y)),
    "ldexp": (lambda x: torch.ldexp(x, torch.tensor(3)), (X,)),
    "heaviside": (torch.heaviside, (torch.relu(X), Y)),
    "dist": (torch.dist, (X, Y)),
    "addbmm": (torch.addbmm, (torch.ones(4, 5), torch.ones(2, 4, 6), torch.ones(2, 6, 5))),
    "cross along a dimension": (lambda x, y: torch.cross(x, y, dim=1), (X[:, :3], Y[:, 1:4])),
    "cross": (torch.linalg.cross, (X[:, :3], Y[:, 1:4])),
    "block diagonal": (lambda x, y: torch.block_diag(x, y[0], 2 * y) @ torch.ones(18, 2), (X, Y)),
    "covariance": (lambda x: torch.cov(x) + torch.corrcoef(x), (X,)),
    "buckets": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]), right=True).float(), (X,)),
    "search in data": (lambda x, y: torch.searchsorted(torch.sort(x).values, y).float(), (X, Y)),
    "numbers for NaN": (lambda x: torch.nan_to_num(x, 2.0), (HOLES,)),
    "sums without NaN": (lambda x: torch.nansum(x, 1) + torch.nanmean(x, 1), (HOLES,)),
    "products up to each": (lambda x: torch.cumprod(x, 1), (P,)),
    "the largest up to each": (lambda x: torch.cummax(x, 0).values - torch.cummin(x, 0).values, (X,)),
    "logarithms up to each": (lambda x: torch.logcumsumexp(x, -1), (X * 30,)),
    "median": (lambda x: x.median(1).values + x.kthvalue(2, 1).values, (X,)),
    "where the median is": (lambda x: x.median(0, keepdim=True).indices.float(), (X,)),
    "sorted rows": (torch.msort, (X,)),
    "the largest of all": (lambda x: F.one_hot(x.argmax(), 24).float(), (X,)),
    "take": (lambda x: x.take(torch.tensor([0, 5, 7])), (X,)),
    "take along": (lambda x: torch.take_along_dim(x, x.argsort(1), 1), (X,)),
    "written where": (written, (X,)),
    "adaptive maximum": (nn.AdaptiveMaxPool2d((3, 4)), (PICTURE,)),
    "one maximum": (nn.AdaptiveMaxPool2d(1), (PICTURE,)),
    "padding that does not count": (nn.AvgPool2d(3, padding=1, count_include_pad=False), (PICTURE,)),
    "windows that are cut": (nn.AvgPool2d(3, ceil_mode=True), (PICTURE,)),
    "smoothed labels": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (X, CLASSES)),
    "smoothed, weighed and ignored": (
        lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.2, ignore_index=0),
        (X, CLASSES, P[0]),
    ),
    "smoothed sums": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, reduction="none"), (X, CLASSES)),
    "classes of pixels": (lambda x: F.cross_entropy(x.reshape(2, 3, 2, 2), PIXELS, P[0, :3], ignore_index=1), (X,)),
    "classes of pixels, each": (lambda x: F.cross_entropy(x.reshape(2, 3, 2, 2), PIXELS, reduction="none"), (X,)),
    "classes of pixels, smoothed": (lambda x: F.cross_entropy(x.reshape(2, 3, 2, 2), PIXELS, label_smoothing=0.2), (X,)),
    "logarithms of pixels": (lambda x: F.nll_loss(x.reshape(2, 3, 2, 2), PIXELS), (X,)),
    "classes that are data": (lambda x, y, w: F.cross_entropy(x, y.argmax(1), w), (X, Y, P[0])),
    "data, ignored": (lambda x, y: F.cross_entropy(x, y.argmax(1), ignore_index=int(Y[0].argmax())), (X, Y)),
    "data, each": (lambda x, y: F.cross_entropy(x, y.argmax(1), reduction="none"), (X, Y)),
    "data of pixels": (
        lambda x, y: F.cross_entropy(x.reshape(2, 3, 2, 2), y.reshape(2, 3, 2, 2).argmax(1), reduction="sum"),
        (X, Y),
    ),
    "margins": (lambda x, y: F.margin_ranking_loss(x, y, torch.ones(4, 6), margin=0.3), (X, Y)),
    "hinges": (lambda x, y: F.hinge_embedding_loss(x, y.sign()), (X, Y)),
    "triplets": (lambda x, y: F.triplet_margin_loss(x, y, x + y), (X, Y)),
    "cosines": (lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(4)), (X, Y)),
    "the largest neighbour": (lambda a, x: torch.sparse.mm(a, x, "amax"), (NEIGHBOURS, X)),
    "the smallest neighbour": (lambda a, x: torch.sparse.mm(a, x, "amin"), (NEIGHBOURS, X)),
    "the mean of neighbours": (lambda a, x: torch.sparse.mm(a, x, "mean"), (NEIGHBOURS, X)),
    "the mean of computed neighbours": (lambda a, x: torch.sparse.mm(torch.relu(a) * 2, x, "mean"), (NEIGHBOURS, X)),
    "the largest of computed neighbours": (lambda a, x: torch.sparse.mm(torch.relu(a), x, "amax"), (NEIGHBOURS, X)),
    "sampled at zeros": (lambda a, x: torch.sparse.sampled_addmm(a, x, x.T, beta=2, alpha=3).to_dense(), (NEIGHBOURS, X)),
    "sampled at computed zeros": (
        lambda a, x: torch.sparse.sampled_addmm(torch.relu(a), x, x.T, beta=0).to_dense(),
        (NEIGHBOURS, X),
    ),
    "masked by stored zeros": (lambda a, x: (x @ x.T).sparse_mask(a).to_dense(), (NEIGHBOURS, X)),
    "masked by a matrix made sparse": (lambda x, y: y.sparse_mask(torch.relu(x).to_sparse()).to_dense(), (X, Y)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_gives_what_pytorch_gives(case: str) -> None:
    model, inputs = CASES[case]
    for compiled in compiled_at(model, inputs, "none", "full"):
        result = compiled.run()
        assert result.check is not None and result.check.passed, compiled.schedule


def test_positions_of_a_scan_are_refused() -> None:
    with pytest.raises(FrontendError, match="cummax"):
        ff.compile(lambda x: torch.cummax(x, 1).indices.float(), (X,))


def test_positions_of_adaptive_maxima_are_refused() -> None:
    with pytest.raises(FrontendError, match="result 1 of `adaptive_max_pool1d`"):
        ff.compile(lambda x: F.adaptive_max_pool1d(x, 2, return_indices=True), (X,))
