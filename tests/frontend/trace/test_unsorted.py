"""Compressed matrices as PyTorch's own products leave them, with coordinates in any order, and sparse results that it cannot read."""

from collections.abc import Callable

import pytest
import torch
from eager import Function, drawn, matches
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import FrontendError
from fuseflow.frontend.torch_tensors import sorted_entries

POSITIONS, MINOR = torch.tensor([0, 3, 4, 6]), torch.tensor([2, 0, 3, 1, 3, 0])


def _made(layout: str, dtype: torch.dtype = torch.float32) -> Tensor:
    """A matrix of 3 rows, or of 3 columns, whose coordinates do not ascend."""
    make, shape = {"csr": (torch.sparse_csr_tensor, (3, 4)), "csc": (torch.sparse_csc_tensor, (4, 3))}[layout]
    return make(POSITIONS, MINOR, torch.arange(1, 7, dtype=dtype), shape, check_invariants=False)


def _blocks() -> Tensor:
    values = torch.arange(12.0).reshape(3, 2, 2) + 1
    return torch.sparse_bsr_tensor(torch.tensor([0, 2, 3]), torch.tensor([1, 0, 1]), values, (4, 4), check_invariants=False)


def _repeated() -> Tensor:
    minor = torch.tensor([2, 0, 2, 1, 3, 3])
    return torch.sparse_csr_tensor(POSITIONS, minor, torch.arange(1.0, 7.0), (3, 4), check_invariants=False)


class Hops(nn.Module):
    """Two hops, with the square of the adjacency as PyTorch computes it."""

    def __init__(self, square: Tensor) -> None:
        super().__init__()
        self.register_buffer("square", square)
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(self.square @ x)


def _square() -> Tensor:
    adjacency = (torch.rand(20, 20, generator=torch.Generator().manual_seed(0)) < 0.2).float().to_sparse_csr()
    return adjacency @ adjacency


CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "a product of two matrices": (Hops(_square()), (drawn(20, 3),)),
    "rows": (lambda m, x: m @ x, (_made("csr"), drawn(4, 2))),
    "columns": (lambda m, x: m @ x, (_made("csc"), drawn(3, 2))),
    "blocks": (lambda m, x: m @ x, (_blocks(), drawn(4, 2))),
    "entries that are stored twice": (lambda m, x: m @ x, (_repeated(), drawn(4, 2))),
    "64-bit floats": (lambda m, x: m @ x, (_made("csr", torch.float64), drawn(4, 2).double())),
    "an operator on what is stored": (lambda m, x: torch.relu(m) @ x, (_made("csr"), drawn(4, 2))),
    "transposed": (lambda m, x: m @ (m.t() @ x), (_made("csr"), drawn(3, 2))),
}


@pytest.mark.parametrize("name", CASES)
def test_coordinates_in_any_order(name: str) -> None:
    matches(*CASES[name])


@pytest.mark.parametrize("make", [lambda: _made("csr"), lambda: _made("csc"), _blocks, _repeated])
def test_sorting_changes_no_number(make: Callable[[], Tensor]) -> None:
    found = sorted_entries(make())
    valid = torch.sparse_compressed_tensor  # with a check of its invariants
    by_row = found.layout in (torch.sparse_csr, torch.sparse_bsr)
    indices = (found.crow_indices(), found.col_indices()) if by_row else (found.ccol_indices(), found.row_indices())
    assert torch.equal(
        valid(*indices, found.values(), found.shape, layout=found.layout, check_invariants=True).to_dense(), make().to_dense()
    )
    assert sorted_entries(found) is found


def test_indices_that_are_not_valid_are_refused_still() -> None:
    outside = torch.sparse_csr_tensor(POSITIONS, MINOR + 2, torch.ones(6), (3, 4), check_invariants=False)
    with pytest.raises(FrontendError, match="not a valid sparse tensor"):
        ff.compile(Function(lambda m, x: m @ x), (outside, drawn(4, 2)))


NOTHING = torch.zeros(3, 4).to_sparse_csr()


@pytest.mark.parametrize("function", [lambda a: a, torch.relu, lambda a: a * 2])
@pytest.mark.parametrize("cut", ["none", "full"])
def test_a_sum_that_pytorch_cannot_read_fails_there(function: Callable[[Tensor], Tensor], cut: str) -> None:
    model = Function(lambda a: function(a).sum(dim=(0, 1), keepdim=True))
    with pytest.raises(FrontendError, match="the model fails in PyTorch itself: its sparse output `sum` cannot be made dense"):
        ff.compile(model, (NOTHING,), schedule=ff.Schedule.fuse(cut)).run()


@pytest.mark.parametrize("dim", [0, 1])
def test_a_sum_along_one_dimension_of_nothing(dim: int) -> None:
    matches(lambda a: a.sum(dim=dim, keepdim=True), (NOTHING,))


# Layers whose weights are sparse ----------------------------------------------------------------------------------------


def _layer(inputs: int, outputs: int, bias: bool = True, layout: str = "csr") -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias)
    kept = layer.weight.detach() * (torch.rand(outputs, inputs) < 0.4)
    make = {
        "csr": kept.to_sparse_csr,
        "csc": kept.to_sparse_csc,
        "coo": kept.to_sparse,
        "bsr": lambda: kept.to_sparse_bsr((2, 2)),
    }
    layer.weight = nn.Parameter(make[layout](), requires_grad=layout == "csr")
    return layer


def _chain(bias: bool, layout: str) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(_layer(6, 8, bias, layout), nn.ReLU(), _layer(8, 4, bias, layout))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 6)])
def test_layers_in_a_row_with_sparse_weights(layout: str, bias: bool, shape: tuple[int, ...]) -> None:
    matches(_chain(bias, layout), (drawn(*shape),))


@pytest.mark.parametrize("shape", [(6,), (2, 2, 3, 6)])
def test_layers_in_a_row_on_one_vector_and_on_four_dimensions(shape: tuple[int, ...]) -> None:
    matches(_chain(True, "csr"), (drawn(*shape),))


def test_layers_in_a_row_with_weights_of_coordinates() -> None:
    matches(_chain(True, "coo"), (drawn(2, 3, 6),))


def test_a_residual_around_a_sparse_layer() -> None:
    torch.manual_seed(1)
    layer = _layer(6, 6)
    matches(lambda x: torch.tanh(layer(torch.relu(layer(x)))) + x, (drawn(2, 3, 6),))
