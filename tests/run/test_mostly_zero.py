"""A notice names what is dense and mostly zero, and what to type; it is said once, and not of what the user chose."""

from __future__ import annotations

import torch

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
    assert '--format "w=(dense, dense, compressed)"' in notice
