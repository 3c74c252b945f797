"""Constants in blocks that share scales, compared with PyTorch's types of 8 bits and its conversions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import PlanError
from fuseflow.plan.block_scales import FORMS

E4M3 = torch.float8_e4m3fn
X = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))


def mlp() -> nn.Sequential:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).requires_grad_(False)
    model[0].weight[0, :32] = 0
    model[0].weight[1, :32] = 8 * torch.arange(32).float()
    model[2].weight *= 2.0**-20
    return model


def mx(weight: Tensor) -> Tensor:
    blocks = weight.unflatten(-1, (-1, 32))
    largest = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0**-126)
    scale = torch.exp2(torch.floor(torch.log2(largest)) - 8).to(torch.float8_e8m0fnu).float()
    return ((blocks / scale).clamp(-448, 448).to(E4M3).float() * scale).flatten(-2)


def nvfp4(weight: Tensor) -> Tensor:
    magnitudes = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    blocks = weight.unflatten(-1, (-1, 16))
    largest = blocks.abs().amax(-1, keepdim=True)
    whole = largest.max() / (448 * 6)
    scale = (largest / 6 / whole).to(E4M3).float() * whole
    nearest = ((blocks / scale.clamp(min=1e-30)).abs()[..., None] - magnitudes).abs().argmin(-1)
    return (magnitudes[nearest].copysign(blocks) * scale).flatten(-2)


@pytest.mark.parametrize("fuse", ["none", "best", "full"])
@pytest.mark.parametrize(("form", "rounded", "size"), [("mx", mx, 1.03125), ("nvfp4", nvfp4, 0.5625)])
def test_weights_in_blocks_are_pytorchs(form: str, rounded: object, size: float, fuse: str) -> None:
    model = mlp()
    narrow = ff.quantize(ff.compile(model, (X,)), tolerance=0.1, types=(form,))
    assert dict(narrow.blocks) == {"0.weight": form, "2.weight": form} and not narrow.scales
    assert FORMS[form].bits == 8 * size
    for name, elements in (("0.weight", 64 * 32), ("2.weight", 32 * 8)):
        stored = sum(t.nbytes for other, t in narrow.tensors.items() if other.startswith(f"{name}."))
        assert name not in narrow.tensors and stored == elements * size
    run = ff.compile(narrow.program, tensors=narrow.tensors, schedule=ff.Schedule.fuse(fuse)).run()
    assert run.check is not None and run.check.passed
    first, second = (rounded(layer.weight) for layer in (model[0], model[2]))  # type: ignore[operator]
    wanted = F.linear(F.relu(F.linear(X, first, model[0].bias)), second, model[2].bias)
    np.testing.assert_allclose(next(iter(run.outputs.values())), wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_a_form_that_costs_too_much_is_not_kept_and_the_narrowest_type_wins() -> None:
    compiled = ff.compile(mlp(), (X,))
    exact = ff.quantize(compiled, tolerance=0, types=("mx", "nvfp4"))
    assert not exact.blocks
    narrow = ff.quantize(compiled, tolerance=0.1, types=("i8", "mx", "nvfp4"))
    assert set(narrow.blocks.values()) == {"nvfp4"} and not set(narrow.scales) & set(narrow.blocks)
    assert narrow.to_json()["blocks"] == dict(narrow.blocks)


def test_a_constant_whose_dimension_no_block_divides_stays() -> None:
    narrow = ff.quantize(ff.compile(nn.Linear(24, 8).requires_grad_(False), (X[:, :24],)), tolerance=1, types=("mx", "nvfp4"))
    assert not narrow.blocks and not narrow.trials


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(PlanError, match="`nvfp` is no type of factors") as error:
        ff.quantize(ff.compile(nn.Linear(4, 4), (X[:, :4],)), types=("nvfp",))
    assert "nvfp4" in error.value.hint
