"""Whole networks in plain PyTorch, as tutorials, papers and torchvision write them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from zoo_registry import Brought, zoo

model = partial(zoo.model, "plain")


def image(channels: int = 3, side: int = 8) -> torch.Tensor:
    return torch.randn(1, channels, side, side)


class BasicBlock(nn.Module):
    """The block of ResNet-18 of torchvision."""

    def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class InvertedResidual(nn.Module):
    """The block of MobileNetV2 of torchvision."""

    def __init__(self, inp: int, oup: int, stride: int, expand_ratio: int) -> None:
        super().__init__()
        hidden = inp * expand_ratio
        self.use_res_connect = stride == 1 and inp == oup
        self.conv = nn.Sequential(
            nn.Conv2d(inp, hidden, 1, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU6(inplace=True),
            nn.Conv2d(hidden, oup, 1, bias=False),
            nn.BatchNorm2d(oup),
        )

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class Unet(nn.Module):
    """A U-Net of one level: down, bottom, up, with the skip connection concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.bottom = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = F.relu(self.down(x))
        x = F.relu(self.bottom(F.max_pool2d(skip, 2)))
        return self.out(torch.cat([skip, self.up(x)], dim=1))


class Dlrm(nn.Module):
    """The recommendation model of Meta: tables of embeddings, pairwise products of features, two perceptrons."""

    def __init__(self, rows=(10, 12, 8), width: int = 4) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(n, width, mode="sum") for n in rows)
        self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, width), nn.ReLU())
        features = len(rows) + 1
        self.top = nn.Sequential(nn.Linear(width + features * (features - 1) // 2, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())

    def forward(self, dense, indices, offsets):
        x = self.bottom(dense)
        ly = [table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)]
        T = torch.cat([x, *ly], dim=1).view(x.shape[0], -1, x.shape[1])
        Z = torch.bmm(T, T.transpose(1, 2))
        li = torch.tensor([i for i in range(T.shape[1]) for j in range(i)])
        lj = torch.tensor([j for i in range(T.shape[1]) for j in range(i)])
        return self.top(torch.cat([x, Z[:, li, lj]], dim=1))


class MixtureOfExperts(nn.Module):
    """Each token goes to the best `k` of the experts, all of which are computed and weighted."""

    def __init__(self, width: int = 8, experts: int = 4, k: int = 2) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width)) for _ in range(experts))
        self.k = k

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), self.k)
        gates = torch.zeros(x.shape[0], len(self.experts)).scatter(1, chosen, weights)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return torch.einsum("te,ted->td", gates, outputs)


class Vae(nn.Module):
    """The variational autoencoder of PyTorch's examples; the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(20, 16)
        self.fc21 = nn.Linear(16, 4)
        self.fc22 = nn.Linear(16, 4)
        self.fc3 = nn.Linear(4, 16)
        self.fc4 = nn.Linear(16, 20)

    def forward(self, x, eps):
        h1 = F.relu(self.fc1(x.view(-1, 20)))
        mu, logvar = self.fc21(h1), self.fc22(h1)
        z = mu + eps * torch.exp(0.5 * logvar)
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar


@model(fast=True)
def mlp() -> Brought:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), (torch.randn(4, 8),)


@model(fast=True)
def mlp_mixed_activations() -> Brought:
    network = nn.Sequential(
        nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8), nn.Tanh(), nn.Softmax(dim=-1)
    )
    return network, (torch.randn(4, 8),)


@model(fast=True)
def mlp_pruned() -> Brought:
    network = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    for layer in (network[0], network[2]):
        prune.l1_unstructured(layer, "weight", amount=0.9)
        prune.remove(layer, "weight")
    return network, (torch.randn(4, 16),)


@model()
def mlp_pruned_with_masks() -> Brought:
    network = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    prune.random_unstructured(network[0], "weight", amount=0.8)
    return network, (torch.randn(4, 16),)


@model()
def mnist_convnet() -> Brought:
    """The network of PyTorch's MNIST example, smaller."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3, 1)
            self.conv2 = nn.Conv2d(4, 8, 3, 1)
            self.dropout1 = nn.Dropout(0.25)
            self.fc1 = nn.Linear(8 * 4 * 4, 16)
            self.fc2 = nn.Linear(16, 10)

        def forward(self, x):
            x = F.relu(self.conv1(x))
            x = F.relu(self.conv2(x))
            x = F.max_pool2d(x, 2)
            x = torch.flatten(self.dropout1(x), 1)
            x = F.relu(self.fc1(x))
            return F.log_softmax(self.fc2(x), dim=1)

    return Net(), (image(1, 12),)


@model()
def lenet() -> Brought:
    network = nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(4, 8, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 10),
    )
    return network, (image(1, 8),)


@model()
def vgg_features() -> Brought:
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(True),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(4, 8, 3, padding=1),
        nn.ReLU(True),
        nn.AdaptiveAvgPool2d((2, 2)),
        nn.Flatten(),
        nn.Linear(32, 5),
    )
    return network, (image(),)


@model()
def resnet_basic_block() -> Brought:
    return BasicBlock(4, 4), (image(4),)


@model()
def resnet_downsampling_block() -> Brought:
    return BasicBlock(4, 8, stride=2), (image(4),)


@model()
def resnet_block_pruned() -> Brought:
    block = BasicBlock(4, 4)
    for conv in (block.conv1, block.conv2):
        prune.l1_unstructured(conv, "weight", amount=0.9)
        prune.remove(conv, "weight")
    return block, (image(4),)


@model()
def mobilenet_block() -> Brought:
    return InvertedResidual(4, 4, 1, 2), (image(4),)


@model()
def mobilenet_strided_block() -> Brought:
    return InvertedResidual(4, 6, 2, 2), (image(4),)


@model()
def squeeze_excitation() -> Brought:
    class SqueezeExcitation(nn.Module):
        def __init__(self, channels: int = 8, squeeze: int = 2) -> None:
            super().__init__()
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.fc1 = nn.Conv2d(channels, squeeze, 1)
            self.fc2 = nn.Conv2d(squeeze, channels, 1)

        def forward(self, x):
            scale = torch.sigmoid(self.fc2(F.relu(self.fc1(self.avgpool(x)))))
            return scale * x

    return SqueezeExcitation(), (image(8, 4),)


@model()
def inception_block() -> Brought:
    class Inception(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branch1 = nn.Conv2d(4, 2, 1)
            self.branch2 = nn.Sequential(nn.Conv2d(4, 2, 1), nn.Conv2d(2, 3, 3, padding=1))
            self.branch3 = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(4, 2, 1))

        def forward(self, x):
            return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x)], 1)

    return Inception(), (image(4, 6),)


@model()
def dense_block() -> Brought:
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 2, 3, padding=1)) for c in (4, 6)
            )

        def forward(self, x):
            for layer in self.layers:
                x = torch.cat([x, layer(x)], 1)
            return x

    return Dense(), (image(4, 6),)


@model()
def unet() -> Brought:
    return Unet(), (image(1),)


@model()
def conv_autoencoder() -> Brought:
    network = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 1, 3, stride=2, padding=1, output_padding=1),
        nn.Sigmoid(),
    )
    return network, (image(1),)


@model()
def dcgan_discriminator() -> Brought:
    network = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(4, 1, 4, 1, 0), nn.Flatten(), nn.Sigmoid())
    return network, (image(1),)


@model(fast=True)
def vae() -> Brought:
    return Vae(), (torch.rand(2, 20), torch.randn(2, 4))


@model()
def dlrm() -> Brought:
    indices = [torch.randint(8, (4,)) for _ in range(3)]
    offsets = [torch.tensor([0, 2]) for _ in range(3)]
    return Dlrm(), (torch.randn(2, 5), indices, offsets)


@model(fast=True)
def mixture_of_experts() -> Brought:
    return MixtureOfExperts(), (torch.randn(6, 8),)


@model()
def wide_and_deep() -> Brought:
    class WideAndDeep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(12, 1)
            self.deep = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, x):
            return torch.sigmoid(self.wide(x) + self.deep(x))

    return WideAndDeep(), (torch.randn(3, 12),)


@model()
def mlp_mixer_block() -> Brought:
    class Mixer(nn.Module):
        def __init__(self, tokens: int = 6, width: int = 8) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.tokens = nn.Sequential(nn.Linear(tokens, 12), nn.GELU(), nn.Linear(12, tokens))
            self.channels = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

        def forward(self, x):
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    return Mixer(), (torch.randn(2, 6, 8),)


@model()
def siamese_cosine() -> Brought:
    class Siamese(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))

        def forward(self, a, b):
            return F.cosine_similarity(self.net(a), self.net(b))

    return Siamese(), (torch.randn(3, 8), torch.randn(3, 8))
