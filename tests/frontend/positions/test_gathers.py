"""Bags of embeddings stay in the program, also at known items, and mean what PyTorch says they mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model

ITEMS, OFFSETS = torch.tensor([1, 2, 1, 0, 5, 3, 2]), torch.tensor([0, 3, 3, 5])
"""Seven items in four bags. The first bag has an item twice, and the second one is empty."""
WHOLE = torch.tensor([0, 3, 3, 7])
TABLE = torch.tensor([[2, 1, 1, 5], [0, 0, 3, 0]])


def draws() -> list[tuple[Tensor, Tensor]]:
    """Return two tables of six rows, each with weights for the items."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(6, 3, generator=generator), torch.randn(7, generator=generator)) for _ in range(2)]


FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="sum"),
    "mean": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="mean"),
    "max": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="max"),
    "sum with padding": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="sum", padding_idx=1),
    "mean with padding": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="mean", padding_idx=-5),
    "max with padding": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="max", padding_idx=1),
    "weights": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="sum", per_sample_weights=w.sin()),
    "weights and padding": lambda t, w: F.embedding_bag(ITEMS, t, OFFSETS, mode="sum", per_sample_weights=w.sin(), padding_idx=2),
    "an offset for the end": lambda t, w: F.embedding_bag(ITEMS, t, WHOLE, mode="mean", include_last_offset=True),
    "a table of items": lambda t, w: F.embedding_bag(TABLE, t, mode="mean", padding_idx=0),
    "bags of padding alone": lambda t, w: F.embedding_bag(TABLE * 0, t, mode="max", padding_idx=0),
    "no items": lambda t, w: F.embedding_bag(ITEMS[:0], t, torch.tensor([0, 0]), mode="sum"),
    "computed rows": lambda t, w: F.embedding_bag(ITEMS, t.tanh(), OFFSETS, mode="mean"),
    "computed items": lambda t, w: F.embedding_bag(w[:6].topk(4).indices, t, OFFSETS[:2], mode="mean"),
    "computed items with weights": lambda t, w: F.embedding_bag(
        w[:6].topk(4).indices.reshape(2, 2), t, mode="sum", per_sample_weights=w[:4].reshape(2, 2)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bags_are_those_of_pytorch(name: str) -> None:
    for inputs in draws():
        for compiled in compiled_at(FUNCTIONS[name], inputs, "none", "best", "full"):
            result = compiled.run()
            assert result.check is not None and result.check.passed, compiled.schedule


def test_the_table_is_an_input_and_known_items_take_one_product() -> None:
    program = import_model(FUNCTIONS["mean"], draws()[0]).program
    assert [tensor.name for tensor in program.inputs] == ["t", "bags"]
    assert len(program.einsums) == 1


class Bags(nn.Module):
    def __init__(self, offsets: Tensor, has_end: bool) -> None:
        super().__init__()
        self.bag, self.offsets = nn.EmbeddingBag(6, 3, mode="mean", include_last_offset=has_end), offsets

    def forward(self, items: Tensor) -> Tensor:
        result: Tensor = self.bag(items, self.offsets)
        return result


@pytest.mark.parametrize(
    ("offsets", "has_end"), [([0, 4, 3], False), ([0, 5, 3, 7], True), ([0, 3, 5], True), ([0, 9], False), ([1, 3], False)]
)
def test_offsets_that_fall_or_lie_outside_are_an_error_with_the_line(offsets: list[int], has_end: bool) -> None:
    with pytest.raises(FrontendError) as caught:
        import_model(Bags(torch.tensor(offsets), has_end), (ITEMS,))
    assert "ffset" in caught.value.message or "index" in caught.value.message
    assert caught.value.span is not None and caught.value.span.file.endswith("test_gathers.py")
