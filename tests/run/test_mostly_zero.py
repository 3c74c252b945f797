"""A notice names what is dense and mostly zero, and what to type; it is said once, and not of what the user chose."""

from __future__ import annotations

import shlex
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.utils import prune

import fuseflow as ff

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(8, 32, generator=GENERATOR)
PRUNED = torch.where(torch.rand(32, 16, generator=GENERATOR) < 0.2, torch.randn(32, 16, generator=GENERATOR), 0.0)


def notices(*inputs: torch.Tensor, schedule: ff.Schedule | None = None, **formats: str) -> tuple[str, ...]:
    return ff.compile(lambda x, w: x @ w, inputs, formats=formats, schedule=schedule).notices


def test_the_notice_says_what_to_type() -> None:
    (notice,) = notices(X, PRUNED)
    zeros = 1 - PRUNED.count_nonzero().item() / PRUNED.numel()
    assert notice == f"stored dense though zero: {zeros:.0%} of `w`; `--format w=csr` stores only what is not zero"
    assert not notices(X, PRUNED, w="csr")
    assert not notices(X, PRUNED, schedule=ff.Schedule.format("w", "dense"))


def test_little_and_full_tensors_are_not_named() -> None:
    assert not notices(X, torch.randn(32, 16))
    assert not notices(X[:, :4], PRUNED[:4])


def test_other_ranks_have_their_levels() -> None:
    batch = PRUNED.expand(3, 32, 16).contiguous()
    (notice,) = ff.compile(lambda x, w: torch.bmm(x, w), (X.expand(3, 8, 32), batch)).notices
    assert "--format 'w=(dense, dense, compressed)'" in notice


def test_matrices_and_filters_have_one_format_together() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3), torch.nn.Conv2d(8, 8, 3), torch.nn.Flatten(), torch.nn.Linear(32, 24), torch.nn.Linear(24, 16)
    )
    for layer in (*model[:2], *model[3:]):
        prune.l1_unstructured(layer, "weight", amount=0.9)
    compiled = ff.compile(model.eval(), (torch.randn(1, 4, 6, 6),), machine="ideal")
    (notice,) = (text for text in compiled.notices if "zero" in text)
    assert flags_of(notice) == ["*.weight=csf"]
    stored = ff.compile(model, (torch.randn(1, 4, 6, 6),), formats={"*.weight": "csf"}, machine="ideal")
    assert not any("zero" in text for text in stored.notices)
    result = stored.run()
    assert result.check.passed and result.cycles < compiled.run().cycles


def pruned(*sizes: int, whole: tuple[int, ...] = ()) -> torch.nn.Module:
    """Return linear layers of which the weights are mostly zero, but for the `whole` ones."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
    for number, layer in enumerate(layers):
        if number not in whole:
            layer.weight.data *= torch.rand(layer.weight.shape) < 0.1
    return torch.nn.Sequential(*layers).eval()


def flags_of(notice: str) -> list[str]:
    """Return the formats of the flags in a notice, as a shell reads them."""
    words = shlex.split(notice.rpartition("; `")[2].partition("` stores")[0])
    assert set(words[::2]) == {"--format"}
    return words[1::2]


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        (pruned(32, 48, 32), ["*.weight=csr"]),
        (pruned(32, 48, 32, 8, 4), ["*.weight=csr"]),  # the last ones are small, and zero too
        (pruned(32, 48, 32, whole=(1,)), ["0.weight=csr"]),
        (pruned(32, 48, 32, 24, whole=(1,)), ["0.weight=csr", "2.weight=csr"]),
        (torch.nn.Sequential(pruned(32, 48, 40), torch.nn.LayerNorm(40), torch.nn.Linear(40, 16)).eval(), ["0.*.weight=csr"]),
    ],
    ids=["all", "small ones", "one", "two of three", "of one block"],
)
def test_one_notice_gives_flags_that_work(model: torch.nn.Module, flags: list[str]) -> None:
    """What the flags say stores all that the notice names, and leaves out the rest."""
    compiled = ff.compile(model, (X,), machine="ideal")
    (notice,) = compiled.notices
    assert sorted(flags_of(notice)) == flags
    again = ff.compile(model, (X,), schedule=ff.Schedule.from_flags(formats=flags_of(notice)), machine="ideal")
    assert not any("zero" in text for text in again.notices)
    for name, tensor in again.inputs().items():
        dense = compiled.inputs()[name].values
        few = tensor.format.rank == 2 and np.count_nonzero(dense) < 0.3 * dense.size
        assert tensor.values.size == (np.count_nonzero(dense) if few else dense.size), name
    assert again.run().check.passed


def test_a_weight_pruned_by_pytorch_takes_no_more_cycles_than_a_dense_one() -> None:
    """The network of `prune`: its masks are folded, one flag stores what is left, and no zeros are stored."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 32)).eval()
    x = torch.randn(8, 64)
    dense = ff.compile(model, (x,), machine="ideal").run().cycles
    for layer in (model[0], model[2]):
        prune.l1_unstructured(layer, "weight", amount=0.9)
    compiled = ff.compile(model, (x,), machine="ideal")
    (notice,) = (text for text in compiled.notices if "zero" in text)
    assert flags_of(notice) == ["*.weight=csr"] and compiled.run().cycles <= dense
    stored = ff.compile(model, (x,), schedule=ff.Schedule.format("*.weight", "csr"), machine="ideal")
    result = stored.run()
    assert result.check.passed and result.cycles < dense / 4
    assert all(np.count_nonzero(t.values) == t.values.size for name, t in stored.inputs().items() if "weight" in name)
    named = {"0.weight": "csr", "2.weight": "csr"}
    assert dict(stored.schedule.formats) == named and ff.Schedule.from_yaml(stored.schedule.to_yaml()) == stored.schedule
    assert ff.compile(model, (x,), formats={"*.weight": "csr"}, machine="ideal").run().cycles == result.cycles
