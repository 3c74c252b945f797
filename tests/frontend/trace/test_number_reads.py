"""A loop that ends on data is unrolled to the rounds that the data take, and is told; any other choice on data is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

TOLERANCE = 1e-2
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))


class Layer(nn.Module):
    """A function of the input and a contraction."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(0.3 * torch.eye(4).roll(1, 0))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(lambda z: torch.tanh(z @ self.weight + x), x)


def left_by_break(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    for _ in range(50):
        previous, z = z, step(z)
        if (z - previous).norm() < TOLERANCE:
            break
    return z


def left_by_return(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    z = torch.zeros_like(x)
    while True:
        previous, z = z, step(z)
        if (z - previous).abs().amax().item() > TOLERANCE:
            pass
        else:
            return z


def repeated_while(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    previous, z = torch.zeros_like(x), step(torch.zeros_like(x))
    while (z - previous).norm() > TOLERANCE:
        previous, z = z, step(z)
    return z


def repeated_until_close(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    z, rounds = torch.zeros_like(x), 0
    while rounds < 50 and not torch.allclose(z, step(z), atol=TOLERANCE):
        z, rounds = step(z), rounds + 1
    return z


@pytest.mark.parametrize(
    "function", [left_by_break, left_by_return, repeated_while, repeated_until_close], ids=lambda f: f.__name__
)
def test_a_loop_that_ends_on_data(function: Callable[..., Tensor]) -> None:
    rounds = set[int]()
    for x in (X, X / 20):
        for compiled in compiled_at(Layer(function), (x,), "none", "full"):
            result = compiled.run()
            assert result.check is not None and result.check.passed, compiled.schedule
        (notice,) = compiled.notices
        assert "test_number_reads.py:" in notice and "is unrolled" in notice
        rounds.add(len(compiled.program.einsums))
    assert len(rounds) == 2


def chosen(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    for _ in range(3):
        if x.sum() > 0:
            x = step(x)
    return x


def left_outside(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    if x.sum() > 0:
        return step(x)
    return x


def number_kept(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    while (size := x.norm().item()) > 1:
        x = step(x) / size
    return x


@pytest.mark.parametrize("function", [chosen, left_outside], ids=lambda f: f.__name__)
def test_another_choice_on_data_is_refused(function: Callable[..., Tensor]) -> None:
    with pytest.raises(FrontendError, match="control flow depends on data") as refused:
        import_model(Layer(function), (X,))
    assert (
        refused.value.span is not None and refused.value.span.line == function.__code__.co_firstlineno + (function is chosen) + 1
    )


def test_a_number_that_is_used_elsewhere_is_refused() -> None:
    with pytest.raises(FrontendError, match="taken out of a tensor by `item`, depends on data"):
        import_model(Layer(number_kept), (X,))


def test_a_loop_without_end_is_refused_at_its_line() -> None:
    def endless(step: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        while x.sum() == x.sum():
            x = x * 1
        return x

    with pytest.raises(FrontendError, match="more than 1,000 rounds") as refused:
        import_model(Layer(endless), (X,))
    assert refused.value.span is not None and refused.value.span.line == endless.__code__.co_firstlineno + 1
