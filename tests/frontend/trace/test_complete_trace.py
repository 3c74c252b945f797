"""All that follows from an input is in the program, also what PyTorch computes inside of function transforms and backward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.nn import functional

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
NORM = nn.LayerNorm(3)
X, OTHER = torch.rand(6, 3) + 0.1, torch.rand(6, 3) + 0.1


class Ensemble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.members = nn.ModuleList(nn.Linear(3, 2) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        states = stack_module_state(list(self.members))
        return vmap(lambda p, b: functional_call(self.members[0], (p, b), (x,)))(*states).mean(0)


class Forces(nn.Module):
    """An energy and the forces of it, by a backward pass in `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.net = NET

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        energy = self.net(x).sum()
        return energy, -torch.autograd.grad(energy, x)[0]


def curvature(x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(NET(x).sum(), x, create_graph=True)
    return torch.autograd.grad((slope * slope).sum(), x)[0]


def backward(x: Tensor) -> Tensor | None:
    x = x.clone().requires_grad_()
    (x * x).sum().backward()
    return x.grad


def per_sample(x: Tensor) -> Any:
    loss = lambda p, y: functional_call(NET, p, (y,)).square().sum()  # noqa: E731
    return vmap(grad(loss), in_dims=(None, 0))(dict(NET.named_parameters()), x)


MODELS: dict[str, Callable[..., Any]] = {
    "ensemble": Ensemble(),
    "forces": Forces(),
    "curvature": curvature,
    "backward": backward,
    "jacobian, backward": lambda x: vmap(jacrev(NET))(x),
    "jacobian, forward": lambda x: vmap(jacfwd(NET))(x),
    "hessian": lambda x: vmap(hessian(lambda y: NET(y).sum()))(x),
    "jacobian times a vector": lambda x: jvp(NET, (x,), (torch.ones_like(x),)),
    "vector times a jacobian": lambda x: vjp(NET, x)[1](torch.ones(6, 2))[0],
    "vector times a jacobian of a linear layer": lambda x: vjp(NET[0], x)[1](x @ torch.ones(3, 8))[0],
    "gradients of samples": per_sample,
    "mapped softmax": lambda x: vmap(lambda y: y.softmax(-1) + y.log_softmax(-1))(x),
    "mapped norm": lambda x: vmap(NORM)(x),
    "mapped attention": lambda x: vmap(functional.scaled_dot_product_attention)(*[x.view(1, 2, 3, 3)] * 3),
    "mapped index": lambda x: vmap(lambda i: x[i] * 2)(torch.tensor([0, 2])),
    "written in a map": lambda x: vmap(lambda y, z: z.copy_(y))(x, torch.zeros(6, 3)) * 2,
    "data": lambda x: x.data * 2,
    "squeezed in place": lambda x: (x[:, :1] * 2).squeeze_(1) + 1,
}
"""Models by name. In a composite trace, most of what they compute is unknown."""
ACTIVATIONS = (
    "tanh sigmoid relu gelu silu elu leaky_relu softplus hardtanh hardswish hardsigmoid relu6 mish logsigmoid softmax log_softmax"
)
GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: getattr(functional, name) for name in ACTIVATIONS.split()},
    "layer norm": lambda x: NORM(x),
    "group norm": lambda x: functional.group_norm(x.unsqueeze(0), 2),
    "norm": lambda x: x.norm(dim=-1),
    "extreme": lambda x: x.max(-1)[0] + x.amin(-1),
    "stack": lambda x: torch.stack([x, x * 2]),
    "part": lambda x: torch.cat([x, x * x], -1)[:, 1:5],
    "gather": lambda x: x[torch.tensor([0, 0, 2])],
    "scatter": lambda x: torch.zeros(4, 3).index_add(0, torch.tensor([0, 1, 1, 3, 2, 0]), x),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "sum of products": lambda x: torch.einsum("ij,kj->ik", x, x),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
}
"""Functions whose square is differentiated."""


def matches(model: Callable[..., Any]) -> None:
    """Check a model on two inputs, and that no tensor of the program but the input differs between them."""
    sources = []
    for x in (X, OTHER):
        compiled = ff.compile(model, (x,))
        result = compiled.run()
        assert result.check is not None and result.check.passed
        sources.append(compiled.source)
    first, second = (source.tensors for source in sources)
    assert [name for name in first if not np.array_equal(first[name].to_dense(), second[name].to_dense())] == ["x"]


@pytest.mark.parametrize("name", MODELS)
def test_what_transforms_and_backward_passes_compute_is_in_the_program(name: str) -> None:
    matches(MODELS[name])


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_operators(name: str) -> None:
    matches(grad(lambda x: GRADIENTS[name](x).square().sum()))


def test_an_input_that_asks_for_gradients_has_them() -> None:
    def slope(x: Tensor) -> Tensor:
        return torch.autograd.grad(NET(x).sum(), x)[0]

    result = ff.compile(slope, (X.clone().requires_grad_(),)).run()
    assert result.check is not None and result.check.passed


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda x: nn.Parameter(x) * 2, "`mul` reads a tensor that follows from an input in a way that PyTorch does not record"),
        (lambda x: nn.Parameter(x * 2), "the model returns a tensor that follows from an input"),
        (lambda x: torch.from_dlpack(x * 2), "taken out of a tensor by `__dlpack__`, depends on data"),
        (lambda x: torch.tensor([x.sum(), x.mean()]), "taken out of a tensor by `tensor`, depends on data"),
        (lambda x: x.clone().apply_(lambda number: 2 * number), "taken out of a tensor by `apply_`, depends on data"),
    ],
)
def test_what_follows_from_an_input_unrecorded_is_refused(model: Callable[..., Any], message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        import_model(model, (X,))


def test_memory_beside_the_model_that_an_input_is_written_to_is_refused() -> None:
    memory = [torch.zeros(3)]

    def remember(x: Tensor) -> Tensor:
        memory[0][1] = x.sum()
        return memory[0] * x

    with pytest.raises(FrontendError, match="the model mutates `constant`"):
        import_model(remember, (X,))


def test_numbers_of_the_code_and_of_structure_may_be_put_into_a_tensor() -> None:
    def scaled(x: Tensor, i: Tensor) -> Tensor:
        return x * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor([i.max(), 2])[0]

    result = ff.compile(scaled, (X, torch.tensor([0, 4]))).run()
    assert result.check is not None and result.check.passed
