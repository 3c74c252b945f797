"""Patterns of names give formats to tensors: exact names count more, then the last pattern that fits; what is left out is said."""

from __future__ import annotations

import re

import pytest

from fuseflow.errors import FuseFlowError, TensorError, UsageError
from fuseflow.tensors.format_patterns import ExactFormats, exact_formats, is_pattern

GIVEN = {"0.weight": (2,), "0.bias": (1,), "1.weight": (1,), "2.weight": (2,), "2.bias": (1,), "mask": (4, 2), "x": (2,)}
COMPUTED = {"0.matmul": (2,), "2.matmul": (2,)}


def refusal(pattern: str, error: TensorError) -> FuseFlowError:
    return UsageError(f"{pattern}: {error.message}", hint=error.hint)


def named(*entries: tuple[str, str]) -> ExactFormats:
    return exact_formats(entries, GIVEN, lambda: COMPUTED, refusal)


@pytest.mark.parametrize(
    ("entries", "formats"),
    [
        ([("*.weight", "csr")], {"0.weight": "csr", "2.weight": "csr"}),
        ([("?.weight", "csr")], {"0.weight": "csr", "2.weight": "csr"}),
        ([("[12].*", "csf")], {"1.weight": "csf", "2.weight": "csf", "2.bias": "csf"}),
        ([("*.weight", "csr"), ("2.*", "csc")], {"0.weight": "csr", "2.weight": "csc"}),
        ([("2.*", "csc"), ("*.weight", "csr")], {"0.weight": "csr", "2.weight": "csr"}),
        (
            [("*.weight", "csr"), ("*.bias", "(compressed)")],
            {"0.weight": "csr", "2.weight": "csr"} | dict.fromkeys(["0.bias", "2.bias"], "(compressed)"),
        ),
        ([("2.weight", "dense"), ("*.weight", "csr")], {"0.weight": "csr", "2.weight": "dense"}),
        ([("m*", "csr")], {"mask": "csr"}),
        ([("m*", "(dense, dense, dense, compressed)")], {"mask": "(dense, dense, dense, compressed)"}),
        ([("*.matmul", "csr")], {"0.matmul": "csr", "2.matmul": "csr"}),
        ([("nowhere", "csr")], {"nowhere": "csr"}),
    ],
    ids=lambda value: " ".join("=".join(entry) for entry in value) if isinstance(value, list) else "",
)
def test_each_tensor_has_one_format(entries: list[tuple[str, str]], formats: dict[str, str]) -> None:
    assert named(*entries).formats == formats


def test_what_a_format_is_not_for_is_left_out_and_said() -> None:
    assert named(("*.weight", "csr")).notices == (
        "`*.weight=csr` leaves out `1.weight`: `csr` is for another number of dimensions",
    )
    assert not named(("*.weight", "csr"), ("1.weight", "dense")).notices
    (notice,) = named(("*", "csr")).notices
    assert "`0.bias`, `1.weight`, `2.bias`: " in notice
    (notice,) = exact_formats([("*", "csr")], {"w": (2,), **{f"b{n}": (1,) for n in range(5)}}, dict, refusal).notices
    assert "`b0`, `b1`, `b2`, `b3` and 1 more: " in notice


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        (("*.wieght", "csr"), "matches no tensor", r"did you mean `\*\.weight`"),
        (("0.weigh?t", "csr"), "matches no tensor", r"did you mean `0\.weight`"),
        (("layer*", "csr"), "matches no tensor", "known: "),
        (("*.bias", "csr"), "matches `0.bias`: format `csr` is for matrices", "levels"),
        (("*.weight", "crs"), "matches `0.weight`: unknown format `crs`", "did you mean `csr`"),
    ],
    ids=lambda value: "=".join(value) if isinstance(value, tuple) else "",
)
def test_a_pattern_that_gives_nothing_is_refused(entry: tuple[str, str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(("0.weight", "csr"), entry)
    assert message in caught.value.message and caught.value.message.startswith(entry[0])
    assert re.search(hint, caught.value.hint)


def test_names_of_tensors_are_no_patterns() -> None:
    assert not any(map(is_pattern, [*GIVEN, *COMPUTED, "layer1.lin.weight_2"]))
