"""Models with elements of 8 and 16 bits: stored in so many bits, rounded where PyTorch rounds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model, read_mlir

BFLOAT16 = torch.bfloat16
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
