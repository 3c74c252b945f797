"""Random modules whose sparsity depends on data: routing, masks of attention, sparse tensors made in `forward`. Programs equal eager
PyTorch on two inputs, at each cut."""

from collections.abc import Callable

import pytest
import random_choices

from fuseflow.errors import FrontendError

SEEDS, MORE_SEEDS = range(4), 60
REASONS = ("as many counts as the greatest number says (`aten.bincount.default`)",)
"""Why a module may be refused: what has no size before data are known."""


def outcome(seed: int, kind: str, cuts: tuple[str, ...]) -> bool:
    """Return whether a module of a seed is right. It may be refused for reasons that are known."""
    try:
        random_choices.check(seed, kind, cuts)
    except FrontendError as error:
        if not any(reason in error.message for reason in REASONS):
            raise
        return False
    return True


@pytest.mark.parametrize("kind", random_choices.KINDS)
def test_program_equals_eager(kind: str) -> None:
    """Each seed draws one module, and takes one of the cuts."""
    taken = [outcome(seed, kind, (random_choices.CUTS[seed % 3],)) for seed in SEEDS]
    assert sum(taken) >= len(taken) - 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", random_choices.KINDS)
def test_more_programs_equal_eager(kind: str, draws: Callable[[int], range]) -> None:
    taken = [outcome(seed, kind, random_choices.CUTS) for seed in draws(MORE_SEEDS)]
    assert sum(taken) >= 0.9 * len(taken)
