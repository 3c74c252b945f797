"""Convolutions with one window, pooling with padding, and windows that are strides in memory: PyTorch computes the same at every cut."""

from collections.abc import Callable

import pytest
import torch
from eager import drawn, matches
from sources import compiled
from torch import Tensor, nn
from torch.nn import functional as F

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model
from fuseflow.schedule import Schedule

SIGNAL, IMAGE, VOLUME = drawn(2, 2, 7), drawn(1, 2, 6, 7), drawn(1, 2, 4, 5, 5)

ONE_WINDOW: dict[str, tuple[nn.Module, Tensor]] = {
    "conv2d": (nn.Conv2d(4, 4, 3, stride=2, padding=1, bias=False), drawn(1, 4, 2, 2)),
    "conv2d of a batch, with a bias": (nn.Conv2d(4, 3, 3, stride=2, padding=1), drawn(2, 4, 2, 2)),
    "depthwise": (nn.Conv2d(4, 4, 3, stride=2, padding=1, groups=4, bias=False), drawn(1, 4, 2, 2)),
    "grouped": (nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), drawn(2, 4, 2, 2)),
    "dilated": (nn.Conv2d(2, 3, 3, stride=3, padding=2, dilation=2), drawn(1, 2, 3, 3)),
    "along one dimension": (nn.Conv2d(2, 3, 3, stride=(2, 1), padding=1), drawn(1, 2, 2, 4)),
    "1 x 1": (nn.Conv2d(3, 4, 1, stride=2), drawn(1, 3, 2, 2)),
    "conv1d": (nn.Conv1d(2, 3, 3, stride=2, padding=1), drawn(2, 2, 2)),
    "conv1d without padding": (nn.Conv1d(2, 3, 3, stride=5, padding="valid"), drawn(2, 2, 6)),
    "conv3d": (nn.Conv3d(2, 3, 3, stride=2, padding=1), drawn(1, 2, 2, 2, 2)),
    "conv3d grouped": (nn.Conv3d(2, 4, 3, stride=2, padding=1, groups=2), drawn(1, 2, 3, 2, 4)),
    "one picture without a batch": (nn.Conv2d(2, 3, 3, stride=2, padding=1), drawn(2, 2, 2)),
    "circular": (nn.Conv2d(2, 3, 3, stride=2, padding=1, padding_mode="circular"), drawn(1, 2, 2, 2)),
    "transposed": (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), drawn(1, 2, 1, 1)),
    "transposed in three dimensions": (nn.ConvTranspose3d(2, 2, 2, stride=2, groups=2), drawn(1, 2, 2, 1, 1)),
    "average": (nn.AvgPool2d(4, 3), drawn(1, 2, 5, 5)),
    "average of volumes": (nn.AvgPool3d(2), drawn(1, 2, 3, 3, 3)),
    "maximum": (nn.MaxPool2d(3, 2), drawn(1, 2, 4, 4)),
    "two layers": (
        nn.Sequential(nn.Conv2d(2, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, 1), nn.Flatten(), nn.Linear(4, 3)),
        drawn(1, 2, 4, 4),
    ),
}
POOLS: dict[str, tuple[nn.Module, Tensor]] = {
    "average, padded, up": (nn.Sequential(nn.Conv1d(2, 2, 3, padding=1), nn.AvgPool1d(3, 2, 1, True)), drawn(1, 2, 6)),
    "average of pictures, padded, up": (nn.AvgPool2d(2, 2, 1, True), IMAGE),
    "average of volumes, padded, up": (nn.AvgPool3d(3, 2, 1, True), VOLUME),
    "average without the padding": (nn.AvgPool2d(3, 1, 1, False, False), IMAGE),
    "average without the padding, up": (nn.AvgPool1d(4, 3, 2, True, False), SIGNAL),
    "average with a divisor, up": (nn.AvgPool2d(3, 2, 1, True, divisor_override=5), IMAGE),
    "average along one dimension": (nn.AvgPool2d((3, 1), (2, 1), (1, 0), True, divisor_override=4), IMAGE),
    "average of one picture": (nn.AvgPool2d(3, 2, 1, True), drawn(2, 5, 5)),
    "average of many": (nn.AvgPool2d(7, 1, 3), IMAGE),
    "power average, up": (nn.LPPool2d(2, 3, 2, ceil_mode=True), IMAGE.abs()),
    "maximum of many": (nn.MaxPool2d((5, 7), (1, 2), (2, 3)), -IMAGE.abs()),
    "maximum, padded, up": (nn.MaxPool1d(3, 2, 1, ceil_mode=True), -SIGNAL.abs()),
    "maximum, dilated, up": (nn.MaxPool2d(3, 1, 1, 2, ceil_mode=True), -IMAGE.abs()),
    "maximum of volumes, padded, up": (nn.MaxPool3d(2, 2, 1, ceil_mode=True), -VOLUME.abs()),
    "adaptive average up": (nn.AdaptiveAvgPool1d(9), SIGNAL),
    "adaptive average": (nn.AdaptiveAvgPool2d((4, None)), IMAGE),
    "adaptive maximum": (nn.AdaptiveMaxPool3d(2), VOLUME),
}


@pytest.mark.parametrize("name", ONE_WINDOW)
def test_one_window_along_a_dimension(name: str) -> None:
    module, x = ONE_WINDOW[name]
    matches(module, (x,), ("none", "full") if x.dim() == 5 else ("none", "layerwise", "full"))


@pytest.mark.parametrize("name", POOLS)
def test_pooling_with_padding(name: str) -> None:
    module, x = POOLS[name]
    matches(module, (x,), ("none", "full") if x.dim() == 5 else ("none", "layerwise", "full"))


@pytest.mark.parametrize("groups", [1, 2])
def test_padding_that_keeps_the_extent(groups: int) -> None:
    matches(nn.Conv2d(2, 2, (3, 4), padding="same", dilation=(2, 1), groups=groups), (IMAGE,), ("none",))
    matches(nn.Conv3d(2, 2, (1, 2, 3), padding="same", groups=groups), (VOLUME,), ("none",))


@pytest.mark.parametrize("fuse", ["none", "layerwise"])
def test_mobilenet(fuse: str) -> None:
    """Its second pair leaves one pixel."""
    model = compiled("mobilenet.py", Schedule.fuse(fuse), options={"small": True, "side": 4, "pairs": 2})
    assert model.run().check.passed


# Windows that are strides in memory ------------------------------------------------------------------------------------


def _chunks(x: Tensor, width: int = 2) -> Tensor:
    """Overlapping chunks of a sequence, as Longformer and LED make them."""
    batch, length, features = x.shape
    x = x.view(batch, length // (2 * width), 2 * width, features)
    size, stride = list(x.shape), list(x.stride())
    size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
    return x.as_strided(size=size, stride=stride)


class SlidingScores(nn.Module):
    """The scores of a sliding attention: every query with the keys of its chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(torch.einsum("bcxd,bcyd->bcxy", _chunks(self.query(x)), _chunks(self.key(x))), -1)


STRIDES: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "a sliding attention": (SlidingScores(), drawn(2, 8, 3)),
    "values of padded chunks": (
        lambda v: F.pad(v, (0, 0, 2, 2), value=-1).as_strided((2, 2, 6, 3), (24, 6, 3, 1)),
        drawn(2, 4, 3),
    ),
    "windows": (lambda x: (x * 2).as_strided((3, 4), (2, 1)).sum(1), drawn(8)),
    "windows from an offset": (lambda x: torch.as_strided(x * 2, (3, 3), (2, 1), 1), drawn(8)),
    "a transposed operand": (lambda x: (x * 2).t().as_strided((3, 2), (1, 3)), drawn(4, 5)),
    "a diagonal": (lambda x: (x * 2).as_strided((4,), (5,)), drawn(4, 4)),
    "a Hankel matrix": (lambda x: (x * 2).as_strided((4, 4), (1, 1)) @ torch.ones(4, 2), drawn(7)),
    "copies": (lambda x: (x * 2).as_strided((3, 4), (0, 1)), drawn(4)),
    "one element": (lambda x: (x * 2).as_strided((), (), 3), drawn(4)),
    "rows of an operand that begins later": (lambda x: (x * 2)[1:3].as_strided((2, 2), (4, 1)), drawn(4, 4)),
}


@pytest.mark.parametrize("name", STRIDES)
def test_windows_in_memory(name: str) -> None:
    function, x = STRIDES[name]
    matches(function, (x,))


@pytest.mark.parametrize(("start", "size", "stride"), [((0, 1), (2, 2), (4, 1)), ((1, 0), (4, 2), (4, 1))])
def test_windows_outside_of_the_operand_are_refused(
    start: tuple[int, int], size: tuple[int, int], stride: tuple[int, int]
) -> None:
    row, column = start
    with pytest.raises(FrontendError, match=r"`as_strided` to \(\d, 2\) reads between or beyond the elements") as caught:
        import_model(lambda x: (x * 2)[row:, column : column + 2].as_strided(size, stride, 0), (drawn(4, 4),), {}, "m")
    assert ".clone()" in caught.value.hint and caught.value.span is not None


def test_positions_of_a_maximum_are_refused() -> None:
    with pytest.raises(FrontendError, match="max_pool2d") as caught:
        import_model(lambda x: F.max_pool2d(x, 2, return_indices=True)[1], (IMAGE,), {}, "m")
    assert "return_indices" in caught.value.hint
