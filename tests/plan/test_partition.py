"""The partition of an operand: which entries are in which part, and what cannot be divided."""

from __future__ import annotations

import numpy as np
import pytest

from fuseflow.errors import PlanError
from fuseflow.plan.part_format import Form
from fuseflow.plan.partition import PlannedPart, partition


def parts(values: np.ndarray, *planned: str | tuple[str, float], innermost: int = 1) -> list[np.ndarray]:
    """The entries of each part, whose forms are given as `32x32 i8`, some with a weight."""
    texts = [(part, None) if isinstance(part, str) else part for part in planned]
    listed = [PlannedPart(Form.parse(*text.split()), weight) for text, weight in texts]
    return [part.entries for part in partition("B", values, np.ones(values.shape, dtype=bool), listed, innermost)]


def test_groups_take_what_fits_and_the_residue_is_covered():
    values = np.array([[1.0, 1, 1, 0], [0, 0, 1, 1]])
    groups, rest = parts(values, "nm(2:4)", "elements")
    assert groups.tolist() == [[True, True, False, False], [False, False, True, True]]
    assert np.argwhere(rest).tolist() == [[0, 2]]


def test_groups_run_along_the_innermost_dimension():
    groups, rest = parts(np.ones((4, 2)), "nm(1:2)", "elements", innermost=0)
    assert groups.tolist() == [[True, True], [False, False]] * 2
    assert rest.sum() == 4


def test_blocks_share_by_weight():
    values = np.zeros((8, 8))
    values[:4, :4], values[6, 6] = 1, 1
    blocks, elements = parts(values, ("4x4", 16.1), ("elements", 8.04))
    assert np.argwhere(elements).tolist() == [[6, 6]] and blocks.sum() == 16
    blocks, elements = parts(values, ("4x4", 16.1), ("elements", 1.0))
    assert not blocks.any() and elements.sum() == 17


def test_blocks_of_a_narrow_type_leave_the_entries_that_it_does_not_hold():
    values = np.array([[1.0, 2], [3, 0.5]])
    narrow, wide = parts(values, ("2x2 i8", 1.0), ("elements", 8.0))
    assert np.argwhere(wide).tolist() == [[1, 1]] and narrow.sum() == 3


def test_groups_of_a_narrow_type_leave_the_entries_that_it_does_not_hold():
    groups, rest = parts(np.array([[0.5, 1, 2, 3]]), "nm(2:4) i4", "elements")
    assert groups.tolist() == [[False, True, True, False]] and rest.tolist() == [[True, False, False, True]]


def test_what_is_not_needed_is_in_no_part():
    listed = [PlannedPart(Form())]
    (only,) = partition("B", np.ones((2, 2)), np.eye(2, dtype=bool), listed, 1)
    assert (only.entries == np.eye(2)).all()


@pytest.mark.parametrize(
    ("planned", "message"),
    [
        ((), r"`B` has no parts\n  hint: leave it out, or give it one"),
        (("4x4", "4x4"), r"`B` has two parts `4x4`"),
        (("elements", "nm(2:4)"), r"`nm\(2:4\)` of `B` stands behind `elements`\n  hint: n:m parts come first"),
        ((("4x4", 2.0), "elements"), r"`B`: nothing says what blocks of `elements` cost\n  hint: give each part a `weight`"),
        (("nm(2:4)",), r"no part of `B` holds the entry \(0, 2\), which is 1\n  hint: add a part"),
        (("elements i4",), r"no part of `B` holds the entry \(1, 0\), which is 100"),
    ],
)
def test_what_is_no_division_is_refused(planned: tuple[str | tuple[str, float], ...], message: str):
    with pytest.raises(PlanError, match=message):
        parts(np.array([[1.0, 1, 1, 0], [100, 0, 0, 0]]), *planned)


def test_a_weight_of_0_is_refused():
    with pytest.raises(PlanError, match="a weight of 0 for `4x4 i8`"):
        PlannedPart(Form((4, 4), dtype="i8"), 0.0)
