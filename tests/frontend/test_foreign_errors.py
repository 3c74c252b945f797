"""What other software says is told in one sentence, without addresses and invariants, and advice is not given twice."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend.foreign_errors import foreign_message, without_addresses


def refused(model: object, *inputs: Tensor) -> str:
    with pytest.raises(FrontendError) as error:
        ff.compile(model, inputs)
    return str(error.value)


@pytest.mark.parametrize("thing", [object(), len, refused, (n for n in ())])
def test_objects_are_told_without_addresses(thing: object) -> None:
    told = without_addresses(f"cannot add {thing!r}")
    assert "0x" not in told and told.startswith("cannot add ")


@pytest.mark.parametrize(
    "text",
    [
        "Expected storage != nullptr to be true, but got false.  (Could this error message be improved?)",
        'false INTERNAL ASSERT FAILED at "file.cpp":12, please report a bug',
    ],
)
def test_an_invariant_is_told_as_one(text: str) -> None:
    assert foreign_message(RuntimeError(text)) == "RuntimeError: a check inside PyTorch or one of its libraries fails"


def test_error_of_a_model_has_no_address() -> None:
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise ValueError(f"no rule for {object()}")

    assert "fails in PyTorch itself: ValueError: no rule for `object`" in refused(Fails(), torch.ones(2))


def test_eval_is_not_asked_of_a_model_that_is_evaluated() -> None:
    class State(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("h", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.h.add_(x)
            return x + self.h

    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.rand(4)

    for model in (State(), Noise()):
        assert ".eval()" in refused(model.train(), torch.ones(4))
        assert ".eval()" not in refused(model.eval(), torch.ones(4))


def test_sparse_tensor_made_of_data_is_named() -> None:
    class Made(nn.Module):
        def forward(self, values: Tensor, x: Tensor) -> Tensor:
            places = values.argsort()
            return torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 3]), places, values, (3, 3)) @ x

    message = refused(Made(), torch.arange(3.0), torch.ones(3, 2))
    assert "a sparse tensor made inside the model" in message and "device" not in message
