"""MobileNetV1: a convolution, thirteen pairs of a depthwise 3 x 3 and a pointwise 1 x 1 convolution, a mean over space, and a classifier.

A convolution is an Einsum with offsets. `fuseflow run models/mobilenet.py --small --fuse none` runs all of it.
`fuseflow.attributes.analyse_module` says which of its weights a pruned one does not need.
"""

import torch
from torch import Tensor, nn

CLASSES = 120
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""The outputs of each pair, and its stride."""


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """A convolution without a bias, whose weights `reset` draws."""
    options = {"stride": stride, "padding": kernel // 2, "groups": groups, "bias": False}
    return nn.utils.skip_init(nn.Conv2d, inputs, outputs, kernel, **options)


def norm(channels: int, shifted: bool) -> nn.Module:
    """A batch norm with random statistics, shifts and scales, or nothing."""
    if not shifted:
        return nn.Identity()
    layer = nn.BatchNorm2d(channels)
    for tensor in (layer.weight, layer.running_var):
        nn.init.uniform_(tensor, 0.5, 1.5)
    for tensor in (layer.bias, layer.running_mean):
        nn.init.normal_(tensor, std=0.1)
    return layer


class Pair(nn.Module):
    """A depthwise and a pointwise convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int, shifted: bool) -> None:
        super().__init__()
        self.dw = convolution(inputs, inputs, 3, stride, groups=inputs)
        self.dw_norm = norm(inputs, shifted)
        self.pw = convolution(inputs, outputs, 1)
        self.pw_norm = norm(outputs, shifted)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.dw_norm(self.dw(x)))
        return torch.relu(self.pw_norm(self.pw(x)))


class MobileNet(nn.Module):
    """`width` is a factor of all channels, and `pairs` says how many pairs there are. With `shifted`, a batch norm stands behind each
    convolution."""

    def __init__(self, classes: int = CLASSES, width: float = 1, shifted: bool = False, pairs: int = len(BLOCKS)) -> None:
        super().__init__()
        self.pairs = pairs
        channels = [int(width * outputs) for outputs in (32, *(outputs for outputs, _ in BLOCKS[:pairs]))]
        self.conv1 = convolution(3, channels[0], 3, stride=2)
        self.norm1 = norm(channels[0], shifted)
        for n, (_, stride) in enumerate(BLOCKS[:pairs]):
            self.add_module(f"block{n}", Pair(channels[n], channels[n + 1], stride, shifted))
        self.fc = nn.utils.skip_init(nn.Linear, channels[-1], classes, bias=False)

    def reset(self) -> None:
        """Draw all weights in order: N(0, 2 / (k * k * outputs)) for a convolution, and N(0, 0.01 ** 2) for the classifier."""
        with torch.no_grad():
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d):
                    area = layer.kernel_size[0] * layer.kernel_size[1]
                    std = (2 / (area * layer.out_channels)) ** 0.5
                    layer.weight.copy_(torch.randn(layer.weight.shape) * std)
            self.fc.weight.copy_(torch.randn(self.fc.weight.shape) * 0.01)

    def forward(self, images: Tensor) -> Tensor:
        x = torch.relu(self.norm1(self.conv1(images)))
        for n in range(self.pairs):
            x = self.get_submodule(f"block{n}")(x)
        return self.fc(x.mean((2, 3)))


def build(*, small: bool = False, side: int = 0, classes: int = CLASSES, shifted: bool = False, pairs: int = len(BLOCKS)):
    """The model and one random image. `shifted` adds batch norms, whose shifts are not 0, and `pairs` leaves out the last pairs."""
    model = MobileNet(classes, 0.25 if small else 1, shifted, pairs)
    model.reset()
    return model.eval(), (torch.randn(1, 3, *[side or (32 if small else 224)] * 2),)
