"""Weights in blocks that share scales. Stand-ins have the attributes that the tensors of torchao 0.18 have, and its way to the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
X = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))


class ScaledBlocks(Tensor):
    """A tensor that holds others, and is the numbers that they stand for in every operator."""

    @staticmethod
    def __new__(cls, qdata: Tensor, scale: Tensor, block_size: int, shape: tuple[int, ...], **others: Any) -> ScaledBlocks:
        self = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=others.pop("dtype", torch.float32))
        self.qdata, self.scale, self.block_size = qdata, scale, block_size
        for name, value in others.items():
            setattr(self, name, value)
        return self

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return args[0]
        return func(*pytree.tree_map_only(cls, cls.numbers, args), **(kwargs or {}))

    def numbers(self) -> Tensor:
        elements, scale = self.qdata, self.scale.float()
        if elements.dtype == torch.uint8:
            codes = torch.stack([elements & 15, elements >> 4], -1).flatten(-2).long()
            elements = torch.where(codes > 7, -E2M1[codes & 7], E2M1[codes & 7])
        if getattr(self, "per_tensor_scale", None) is not None:
            scale = self.per_tensor_scale * scale
        blocks = elements.float().reshape(*scale.shape, self.block_size) * scale[..., None]
        return blocks.reshape(self.shape).to(self.dtype)


def mx(dtype: torch.dtype, rounding: object = None, **others: Any) -> ScaledBlocks:
    """Blocks of 32 elements of 8 bits that share a power of 2."""
    torch.manual_seed(1)
    elements, exponents = (torch.randn(12, 64) * 100).to(dtype), torch.randint(-9, 3, (12, 2)).float()
    return ScaledBlocks(elements, exponents.exp2().to(torch.float8_e8m0fnu), 32, (12, 64), act_quant_kwargs=rounding, **others)


def nvfp4(**others: Any) -> ScaledBlocks:
    """Blocks of 16 elements of 4 bits that share a float of 8."""
    torch.manual_seed(2)
    pairs, scale = torch.randint(0, 256, (12, 32)).to(torch.uint8), torch.rand(12, 4).to(torch.float8_e4m3fn)
    pairs[0, :2] = torch.tensor([0x80, 0x0F])
    return ScaledBlocks(pairs, scale, 16, (12, 64), act_quant_kwargs=None, is_swizzled_scales=False, **others)


def linear(weight: Tensor) -> nn.Sequential:
    layer = nn.Linear(64, 12)
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return nn.Sequential(layer, nn.ReLU())


CASES = {
    "mx of e4m3": (mx(torch.float8_e4m3fn), ("e4m3", "e8m0"), 12 * 64),
    "mx of e5m2": (mx(torch.float8_e5m2), ("e5m2", "e8m0"), 12 * 64),
    "nvfp4": (nvfp4(), ("e2m1", "e4m3"), 12 * 32),
    "nvfp4 with a factor for all": (nvfp4(per_tensor_scale=torch.tensor(0.03)), ("e2m1", "e4m3"), 12 * 32),
}


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
@pytest.mark.parametrize("case", CASES)
def test_a_weight_is_read_in_its_own_bits(case: str, fuse: str) -> None:
    weight, types, size = CASES[case]
    compiled = ff.compile(linear(weight), (X,), schedule=ff.Schedule.fuse(fuse))
    declared = compiled.program.declared
    assert (declared["0.weight"].dtype, declared["0.weight.scale"].dtype) == types
    assert compiled.source.tensors["0.weight"].nbytes == size
    result = compiled.run()
    assert result.check is not None and result.check.passed and result.check.max_rel_error < 1e-6


def test_the_numbers_of_4_bits_are_those_of_the_codes() -> None:
    weight = nvfp4()
    imported = import_model(linear(weight), (X,))
    scaled = imported.tensors["0.weight"].to_dense().reshape(12, 4, 16) * weight.scale.float().numpy()[..., None]
    np.testing.assert_array_equal(scaled.reshape(12, 64), weight.numbers().numpy())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (nvfp4(act_per_tensor_scale=None), ""),
        (mx(torch.float8_e4m3fn, is_swizzled_scales=True), "the scales of weight `0.weight` are swizzled"),
        (ScaledBlocks(torch.zeros(12, 64, dtype=torch.uint8), torch.ones(12, 2), 32, (12, 64)), "has elements of"),
        (ScaledBlocks(torch.zeros(12, 64).to(torch.float8_e5m2), torch.ones(12, 2), 24, (12, 64)), "has the shape"),
        (ScaledBlocks(torch.zeros(12, 64).to(torch.float8_e5m2), torch.ones(12, 3), 32, (12, 64)), "has the shape"),
    ],
)
def test_what_is_stored_otherwise_is_refused(weight: ScaledBlocks, message: str) -> None:
    if not message:
        assert import_model(linear(weight), (X,)).program.outputs
        return
    with pytest.raises(FrontendError, match=message):
        import_model(linear(weight), (X,))


@dataclass(frozen=True)
class Rounding:
    """What torchao says of an input that a linear layer rounds."""

    elem_dtype: torch.dtype
    block_size: int = 32
    scaling_mode: str = "floor"


class Rounded(nn.Module):
    """A linear layer whose weight rounds its input, and how it does in PyTorch: the exponent is that of the float."""

    def __init__(self, weight: ScaledBlocks) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(self.weight, ScaledBlocks):
            return F.linear(x, self.weight)
        dtype = self.weight.act_quant_kwargs.elem_dtype
        blocks, end = x.unflatten(-1, (-1, 32)), torch.finfo(dtype).max
        scale = 2.0 ** (torch.frexp(blocks.abs().amax(-1, keepdim=True))[1] - math.frexp(end)[1])
        return F.linear(((blocks / scale).clamp(-end, end).to(dtype).float() * scale).flatten(-2), self.weight)


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_an_input_is_rounded_as_the_weight_says(dtype: torch.dtype, fuse: str) -> None:
    """On two inputs, one of which has powers of 2 as its largest numbers."""
    for x in (X * 3, torch.where(X.abs() > 1, 2.0**13, X)):
        model = Rounded(mx(torch.float8_e4m3fn, rounding=Rounding(dtype)))
        compiled = ff.compile(model, (x,), schedule=ff.Schedule.fuse(fuse))
        rounded = [t.dtype for t in compiled.program.tensors if t.name not in compiled.source.tensors and t.dtype.startswith("e")]
        assert ("e4m3" if dtype == torch.float8_e4m3fn else "e5m2") in rounded
        result = compiled.run()
        assert result.check is not None and result.check.passed and result.check.max_rel_error < 1e-6


def test_an_input_that_is_rounded_otherwise_is_refused() -> None:
    for rounding in (object(), Rounding(torch.float8_e4m3fn, scaling_mode="rceil"), Rounding(torch.float8_e4m3fn, block_size=16)):
        with pytest.raises(FrontendError, match=r"`0.weight` rounds what it is multiplied with"):
            import_model(linear(mx(torch.float8_e4m3fn, rounding=rounding)), (X,))


def test_another_operator_on_a_weight_that_rounds_is_refused() -> None:
    class Product(Rounded):
        def forward(self, x: Tensor) -> Tensor:
            return x @ self.weight.t()

    with pytest.raises(FrontendError, match="`t` of weight `weight`, which rounds what it is multiplied with"):
        import_model(Product(mx(torch.float8_e4m3fn, rounding=Rounding(torch.float8_e4m3fn))), (X,))


def test_codes_of_a_table_are_read_in_4_bits() -> None:
    """A table of the numbers of e2m1, and one of others."""

    class Coded(nn.Module):
        def __init__(self, table: Tensor) -> None:
            super().__init__()
            self.register_buffer("table", table)
            self.register_buffer("codes", torch.randint(0, 16, (64, 12)))

        def forward(self, x: Tensor) -> Tensor:
            return x @ (torch.cat([self.table, -self.table])[self.codes] * 0.5)

    for table, dtype in ((E2M1, "e2m1"), (E2M1 * 4 + 16, "e4m3"), (torch.linspace(0.1, 1, 8), "f32")):
        imported = import_model(Coded(table), (X,))
        assert dtype in {t.dtype for t in imported.program.inputs if len(t.shape) == 2 and t.shape != X.shape}
        assert ff.compile(Coded(table), (X,)).run().check.passed
