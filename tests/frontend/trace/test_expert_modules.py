"""Experts of Hugging Face that loop over themselves are imported in the form that multiplies in groups."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fuseflow.frontend import import_model
from fuseflow.frontend.trace.expert_modules import grouped_experts

mixtral = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")


def block() -> nn.Module:
    torch.manual_seed(0)
    config = mixtral.MixtralConfig(hidden_size=8, intermediate_size=8, num_local_experts=4, num_experts_per_tok=2)
    module: nn.Module = mixtral.MixtralSparseMoeBlock(config)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def test_import() -> None:
    """The program says that it has another form, its result is that of the loop, and the model is as it was."""
    module = block()
    source = import_model(module, [torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))])
    assert any("takes the form of `grouped_mm`" in notice for notice in source.notices)
    assert module.experts.config._experts_implementation is None
    assert len(source.program.outputs) == 1


def test_restored_after_an_error() -> None:
    module = block()

    def fail() -> None:
        with grouped_experts(module) as count:
            assert (count, module.experts.config._experts_implementation) == (1, "grouped_mm")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert module.experts.config._experts_implementation is None


def test_other_modules() -> None:
    """What has no experts of Hugging Face, or a form that was chosen, stays as it is."""
    module = block()
    module.experts.config._experts_implementation = "batched_mm"
    for other in (nn.Linear(2, 2), module):
        with grouped_experts(other) as count:
            assert count == 0
