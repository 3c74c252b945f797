"""A batch norm in eval is a product and a sum, whose factors are computed before import; its values are PyTorch's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.frontend import import_model

GENERATOR = torch.Generator().manual_seed(0)


def norm(kind: type[nn.modules.batchnorm._BatchNorm], channels: int, **options: bool) -> nn.Module:
    module = kind(channels, **options)
    with torch.no_grad():
        module.running_mean.normal_(generator=GENERATOR)
        module.running_var.uniform_(0.5, 2, generator=GENERATOR)
        if module.affine:
            module.weight.normal_(generator=GENERATOR)
            module.bias.normal_(generator=GENERATOR)
    return module.eval()


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (norm(nn.BatchNorm1d, 6), (4, 6)),
        (norm(nn.BatchNorm1d, 3), (2, 3, 5)),
        (norm(nn.BatchNorm2d, 3), (2, 3, 4, 5)),
        (norm(nn.BatchNorm2d, 3, affine=False), (2, 3, 4, 5)),
        (norm(nn.BatchNorm3d, 2), (2, 2, 3, 2, 2)),
    ],
    ids=["1d", "sequence", "2d", "without weights", "3d"],
)
def test_a_batch_norm_is_a_product_and_a_sum(module: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=GENERATOR)
    compiled = ff.compile(nn.Sequential(module), (x,), machine="ideal")
    assert {t.name for t in compiled.source.program.inputs} == {"input", "0.scale", "0.shift"}
    assert [einsum.name for einsum in compiled.source.program.einsums] == ["0.mul", "0.add"]
    assert compiled.run().check.passed


def test_a_norm_of_an_exported_program_is_one_too() -> None:
    x = torch.randn(4, 6, generator=GENERATOR)
    program = torch.export.export(nn.Sequential(norm(nn.BatchNorm1d, 6)), (x,))
    for exported in (program, program.run_decompositions()):
        compiled = ff.compile(exported, machine="ideal")
        assert {t.name for t in compiled.source.program.inputs} == {"input", "0.scale", "0.shift"}
        assert compiled.run().check.passed


def test_a_norm_over_data_stays_a_formula() -> None:
    class OfData(nn.Module):
        def forward(self, x: Tensor, mean: Tensor) -> Tensor:
            return F.batch_norm(x, mean, torch.ones(6))

    x = torch.randn(4, 6, generator=GENERATOR)
    compiled = ff.compile(OfData(), (x, torch.randn(6, generator=GENERATOR)), machine="ideal")
    assert "mean" in {t.name for t in compiled.source.program.inputs} and compiled.run().check.passed
    half = norm(nn.BatchNorm1d, 6).half()
    assert import_model(half, (x.half(),)).program.einsums
