"""Models with elements of 8 and 16 bits: stored in so many bits, rounded where PyTorch rounds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model, read_mlir

BFLOAT16, E4M3, E5M2 = torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2
X = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)) * 10
W = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))


def dtypes(program: ff.Program) -> dict[str, str]:
    return {t.name: t.dtype for t in program.tensors}


def autocast(x: Tensor, w: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=BFLOAT16):
        y = torch.relu(x @ w + 1)
        with torch.autocast("cpu", enabled=False):
            z = x @ w
        return F.linear(y.softmax(-1), w, z[0, 0] * w[:, 0]) + y.sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "bfloat16": (nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 4)).to(BFLOAT16), (X.to(BFLOAT16),)),
    "float16": (nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Softmax(-1)).half(), (X.half(),)),
    "there and back": (lambda x: (x.to(BFLOAT16).float() + 1) * 2, (X,)),
    "autocast": (autocast, (X, W)),
    "int8": (lambda q, w: (q.float() * 0.1) @ w, (X.to(torch.int8), W)),
    "uint8": (lambda q, w: (q.permute(1, 0).float() / 255) @ w, (torch.arange(120, 144).reshape(8, 3).to(torch.uint8), W)),
    "int16": (lambda q: q.to(torch.int32) * 2, (X.to(torch.int16),)),
    "e4m3": (lambda x, w: (x * 100).to(E4M3).float() @ w.float(), (X, W.to(E4M3))),
    "e5m2 and a cache": (lambda c, x: torch.cat([c, x.to(E5M2)]).transpose(0, 1).float() * 2, (X.to(E5M2), X)),
    "e8m0": (lambda x, s: x.to(torch.float8_e8m0fnu).float() * s.float(), (X, X.abs().to(torch.float8_e8m0fnu))),
    "a sparse matrix": (lambda a, x: a.to_dense() @ x, ((X * (X > 5)).half().to_sparse_csr(), W.half())),
}


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("case", CASES)
def test_a_run_gives_what_pytorch_gives(case: str, fuse: str) -> None:
    model, inputs = CASES[case]
    result = ff.compile(model, inputs, schedule=ff.Schedule.fuse(fuse)).run()
    assert result.check is not None and result.check.passed


def test_a_conversion_rounds_to_the_bit() -> None:
    """Halfway between two numbers of the type, and beside it."""
    x = torch.tensor([1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20, -300.7, 0.0])
    outputs = ff.compile(lambda x: x.to(BFLOAT16).float(), (x,)).run().outputs
    assert list(next(iter(outputs.values()))) == x.to(BFLOAT16).tolist()


def numbers_of_8_bits(dtype: torch.dtype) -> Tensor:
    """Every number of a type, and halfway between two, and beyond the last: no NaN."""
    numbers = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(dtype).double()
    numbers = numbers[numbers.isfinite()].unique()
    halfway = (numbers[1:] + numbers[:-1]) / 2
    return torch.cat([numbers, halfway, numbers.abs().max() * torch.tensor([1.01, 1.04, 1.2, -3]), torch.tensor([-0.0])]).float()


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_a_conversion_to_8_bits_rounds_to_the_bit(dtype: torch.dtype, fuse: str) -> None:
    x = torch.cat([numbers_of_8_bits(dtype), torch.tensor([torch.inf, -torch.inf, torch.nan])])
    compiled = ff.compile(lambda x: (x.to(dtype), x.to(dtype).float() * 3), (x,), schedule=ff.Schedule.fuse(fuse))
    narrow, tripled = compiled.run().outputs.values()
    wanted = x.to(dtype).float().numpy()
    np.testing.assert_array_equal(narrow, wanted)
    np.testing.assert_array_equal(np.signbit(narrow), np.signbit(wanted))
    np.testing.assert_array_equal(tripled, wanted * 3)


def test_a_power_of_2_for_0_and_for_negative_numbers_is_pytorchs() -> None:
    x = torch.tensor([0.0, -3.0, 1.5, 2.9, 1e-30, 1e30, -0.0])
    outputs = ff.compile(lambda x: x.to(torch.float8_e8m0fnu).float(), (x,)).run().outputs
    assert list(next(iter(outputs.values()))) == x.to(torch.float8_e8m0fnu).tolist()


def test_weights_of_8_bits_are_read_in_8_bits_and_scaled_in_the_program() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", (W * 10).to(E4M3))
            self.register_buffer("scale", torch.rand(4))

        def forward(self, x: Tensor) -> Tensor:
            return x @ (self.weight.float() * self.scale)

    imported = import_model(Scaled(), (X,))
    assert dtypes(imported.program)["weight"] == "e4m3" and imported.tensors["weight"].nbytes == 32
    assert ff.compile(Scaled(), (X,), formats={"weight": "csr"}).run().check.passed


@pytest.mark.parametrize("exponent", [*range(13, 16), 26, 31, 49, 93, 124, -40])
def test_the_logarithm_of_a_power_of_its_base_is_whole(exponent: int) -> None:
    """A scale of MX is the floor of one."""
    powers = torch.tensor([2.0**exponent, 2.0 ** (exponent - 1)])
    outputs = ff.compile(lambda x: torch.floor(torch.log2(x)), (powers,)).run().outputs
    assert list(next(iter(outputs.values()))) == [exponent, exponent - 1]


def test_a_block_that_does_not_divide_is_pytorchs_error() -> None:
    with pytest.raises(FrontendError, match="unflatten: Provided sizes"):
        import_model(lambda x: x.unflatten(-1, (-1, 5)).amax(-1), (X,))


def test_tensors_have_the_bits_of_their_types() -> None:
    imported = import_model(*CASES["bfloat16"])
    assert set(dtypes(imported.program).values()) == {"bf16"}
    assert dtypes(import_model(*CASES["int8"]).program)["q"] == "i8"
    wide = nn.Linear(8, 6)
    runs = [ff.compile(model, (x,)).run() for model, x in ((wide, X), (copy.deepcopy(wide).half(), X.half()))]
    wide_bytes, narrow_bytes = (run.stats["bytes"] for run in runs)
    assert all(wide_bytes[direction] == 2 * narrow_bytes[direction] > 0 for direction in ("read", "write"))


def test_integers_without_a_sign_stay_so_in_mlir() -> None:
    imported = import_model(CASES["uint8"][0], CASES["uint8"][1])
    assert dtypes(imported.program)["q"] == "u8"
    assert dtypes(read_mlir(imported.mlir))["q"] == "u8"


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_arithmetic_that_wraps_around_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(FrontendError, match="which wraps around") as error:
        import_model(lambda x: x + x, (torch.ones(3, 4, dtype=dtype),))
    assert "int32" in error.value.hint
