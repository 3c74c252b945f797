"""What follows from weights alone is an input of the program, with the name of the weight and PyTorch's numbers, and no operator of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune, spectral_norm, weight_norm

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

X = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))


def layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 8))


def each_linear(change: Callable[[nn.Linear], object]) -> nn.Sequential:
    model = layers()
    for layer in (model[0], model[2]):
        change(layer)
    return model


class Mask(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", (torch.rand(weight.shape) < 0.2).float())

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask


class LowRank(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(2, weight.shape[1])), nn.Parameter(torch.randn(weight.shape[0], 2))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.b @ self.a * 0.5


def registered(*kinds: type[nn.Module]) -> nn.Sequential:
    def register(layer: nn.Linear) -> None:
        for kind in kinds:
            parametrize.register_parametrization(layer, "weight", kind(layer.weight))

    return each_linear(register)


def pruned_twice() -> nn.Sequential:
    model = each_linear(lambda layer: prune.l1_unstructured(layer, "weight", amount=0.5))
    for layer in (model[0], model[2]):
        prune.random_unstructured(layer, "weight", amount=0.8)
        prune.random_unstructured(layer, "bias", amount=0.5)
    return model


class Masked(nn.Linear):
    def __init__(self) -> None:
        super().__init__(16, 8)
        self.register_buffer("mask", (torch.rand(8, 16) < 0.2).float())

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.mask, self.bias)


class MergedLora(nn.Linear):
    def __init__(self) -> None:
        super().__init__(16, 8)
        self.lora_A, self.lora_B = nn.Parameter(torch.randn(2, 16)), nn.Parameter(torch.randn(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight + self.lora_B @ self.lora_A * 2.0).t() + self.bias


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize(
    "model",
    [
        each_linear(lambda layer: prune.l1_unstructured(layer, "weight", amount=0.9)),
        each_linear(lambda layer: prune.ln_structured(layer, "weight", amount=0.5, n=2, dim=0)),
        pruned_twice(),
        registered(Mask),
        registered(LowRank),
        registered(LowRank, Mask),
        each_linear(parametrizations.weight_norm),
        each_linear(parametrizations.spectral_norm),
        each_linear(parametrizations.orthogonal),
        each_linear(spectral_norm),
        nn.Sequential(Masked(), nn.ReLU()),
        nn.Sequential(MergedLora(), nn.ReLU()),
    ],
    ids=[
        "prune",
        "rows",
        "twice",
        "mask",
        "lora",
        "masked_lora",
        "weight_norm",
        "spectral_norm",
        "orthogonal",
        "old_spectral_norm",
        "custom_mask",
        "custom_lora",
    ],
)
def test_a_computed_weight_is_one_input_with_its_name(model: nn.Module) -> None:
    model = model.eval()
    imported = import_model(model, (X,))
    linears = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    assert set(imported.tensors) == {"input", *(f"{name}.{part}" for name in linears for part in ("weight", "bias"))}
    for name in linears:
        module = model.get_submodule(name)
        if not isinstance(module, Masked | MergedLora):
            np.testing.assert_allclose(
                imported.tensors[f"{name}.weight"].to_dense(), module.weight.detach(), rtol=1e-6, atol=1e-7
            )
    assert sum("follows from weights alone" in notice for notice in imported.notices) == 1
    assert ff.compile(model, (X,), machine="ideal").run().check.passed


def test_weight_norm_with_hooks() -> None:
    with pytest.warns(FutureWarning):
        model = each_linear(weight_norm).eval()
    assert {"0.weight", "2.weight"} <= set(import_model(model, (X,)).tensors)


def test_what_would_grow_stays_in_the_program() -> None:
    class Thin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(16, 2)), nn.Parameter(torch.randn(2, 24))

        def forward(self, x: Tensor) -> Tensor:
            return x @ (2 * self.a @ self.b)

    imported = import_model(Thin(), (X,))
    assert set(imported.tensors) == {"x", "a", "b"} and imported.tensors["a"].values.size == 32
    assert [einsum.name for einsum in imported.program.einsums] == ["matmul", "matmul_2"]


def test_a_model_of_weights_alone_is_computed_where_it_runs() -> None:
    class Alone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(6, 6)), nn.Parameter(torch.randn(6, 6))

        def forward(self) -> Tensor:
            return torch.relu(self.a @ self.b) @ self.a

    assert len(import_model(Alone(), ()).program.einsums) == 3


def test_inputs_are_never_folded_even_integers() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(9, 6), nn.Embedding(5, 6)

        def forward(self, tokens: Tensor) -> Tensor:
            return torch.relu(self.words(tokens) + self.places(torch.arange(5)))

    imported = import_model(Tokens(), (torch.tensor([[1, 2, 3, 4, 5]]),))
    assert set(imported.tensors) == {"words", "places"}


def test_what_also_is_an_output_is_folded_where_it_meets_data() -> None:
    class Both(Masked):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            weight = self.weight * self.mask
            return F.linear(x, weight, self.bias), weight, weight.abs().sum()

    compiled = ff.compile(Both().eval(), (X,), machine="ideal")
    assert {t.name for t in compiled.source.program.inputs} == {"x", "weight", "bias"}
    assert compiled.run().check.passed


def test_a_tensor_that_a_format_names_stays_what_the_user_means() -> None:
    model = Masked().eval()
    assert {"weight", "mask"} <= set(import_model(model, (X,), {"mask": "csr"}).tensors)
    imported = import_model(model, (X,), {"weight": "csr"})
    assert "mask" not in imported.tensors
    assert imported.tensors["weight"].values.size == np.count_nonzero(imported.tensors["weight"].to_dense()) < 40


def test_a_weight_that_is_read_as_it_is_too_keeps_its_name() -> None:
    class Tied(Masked):
        def forward(self, x: Tensor) -> Tensor:
            return F.linear(x, self.weight * self.mask) @ self.weight

    imported = import_model(Tied().eval(), (X,))
    assert set(imported.tensors) == {
        "x",
        "weight",
        "mask",
    }  # the product has the name of the other factor, which nothing else reads


def test_a_weight_made_sparse_by_a_rule_is_multiplied_where_it_runs() -> None:
    import fuseflow.sparsity as sp

    compiled = ff.compile(Masked().eval(), (X,), sparsity=sp.parse_sparsify("weight=magnitude:0.5"), machine="ideal")
    assert {"weight", "mask"} <= {t.name for t in compiled.source.program.inputs}
    assert compiled.run().check.passed


def test_a_weight_that_changes_is_read_again_by_torch_compile() -> None:
    model = each_linear(lambda layer: prune.l1_unstructured(layer, "weight", amount=0.9)).eval()
    backend = ff.Backend(machine="ideal", schedule=ff.Schedule.format("*.weight", "csr"))
    run = torch.compile(model, backend=backend)
    for _ in range(2):
        with torch.no_grad():
            torch.testing.assert_close(run(X), model(X))
            model[0].weight_orig.mul_(2)
    assert all(result.compiled.inputs()["0.weight"].values.size == model[0].weight_mask.sum() for result in backend.results)


def test_random_numbers_of_a_weight_are_not_known() -> None:
    class Noisy(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return F.linear(x, self.weight + torch.randn_like(self.weight))

    with pytest.raises(FrontendError, match="random"):
        import_model(Noisy(16, 8).eval(), (X,))
