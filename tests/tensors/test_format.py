"""Formats: names, text, and which level may stand below which."""

from __future__ import annotations

import re

import pytest

from fuseflow.errors import FuseFlowError, TensorError, UsageError
from fuseflow.tensors import Format
from fuseflow.tensors.format import SHORT_NAMES, ExactFormats, exact_formats, is_pattern

FULL = {
    ("dense", 0): "()",
    ("dense", 3): "(dense, dense, dense)",
    ("csr", 2): "(dense, compressed)",
    ("csc", 2): "(dense, compressed) order (1, 0)",
    ("dcsr", 2): "(compressed, compressed)",
    ("dcsc", 2): "(compressed, compressed) order (1, 0)",
    ("coo", 1): "(compressed)",
    ("coo", 2): "(compressed(nonunique), singleton)",
    ("coo", 3): "(compressed(nonunique), singleton(nonunique), singleton)",
    ("csf", 3): "(compressed, compressed, compressed)",
}


@pytest.mark.parametrize(("name", "rank"), FULL)
def test_a_short_name_means_its_levels(name, rank):
    format = Format.parse(name, rank)
    assert str(format) == FULL[name, rank]
    assert Format.parse(str(format), rank) == format
    assert Format.parse(format.short(), rank) == format
    assert format.rank == rank


@pytest.mark.parametrize(("name", "rank"), [k for k in FULL if k[1] == 2])
def test_the_short_name_of_a_matrix_is_printed(name, rank):
    assert Format.parse(FULL[name, rank], rank).short() == name


def test_the_order_says_which_dimension_a_level_stores():
    format = Format.parse("(compressed, dense, compressed) order (2, 0, 1)", 3)
    assert format.order == (2, 0, 1)
    assert format.short() == str(format) == "(compressed, dense, compressed) order (2, 0, 1)"
    assert Format.parse("( compressed,dense )order( 1,0 )", 2) == Format.of("compressed", "dense", order=(1, 0))


NAMED_ORDERS = {
    ("csf order (2, 1, 0)", 3): "(compressed, compressed, compressed) order (2, 1, 0)",
    ("csr order (1, 0)", 2): "(dense, compressed) order (1, 0)",
    ("nm(2:4) order (1, 0)", 2): "(dense, nm(2:4)) order (1, 0)",
    ("dense order( 1,2,0 )", 3): "(dense, dense, dense) order (1, 2, 0)",
    ("coo order (1, 0) all", 2): "(compressed(nonunique), singleton) order (1, 0) all",
}


@pytest.mark.parametrize(("text", "rank"), NAMED_ORDERS)
def test_a_short_name_with_an_order(text, rank):
    assert str(Format.parse(text, rank)) == NAMED_ORDERS[text, rank]


def test_all_dense():
    assert Format.dense(2).all_dense
    assert Format.dense(0).all_dense
    assert not Format.parse("csr", 2).all_dense


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [
        ("crs", 2, "unknown format `crs`\n  hint: did you mean `csr`?"),
        ("(dense, compresed)", 2, "unknown level format `compresed`\n  hint: did you mean `compressed`?"),
        ("csr", 3, "format `csr` is for matrices, the tensor has 3 dimensions"),
        ("csf order 1 0", 2, "cannot read `order 1 0` behind the format `csf`"),
        ("csc order (0, 1)", 2, "the format `csc` has an order of its own, (1, 0), and is given another one"),
        ("csf order (0, 0)", 2, "mode order (0, 0) is not a permutation of the 2 dimensions"),
        ("csrx", 2, "unknown format `csrx`\n  hint: did you mean `csr`?"),
        ("(dense)", 2, "format `(dense)` has 1 level, the tensor 2 dimensions"),
        ("(dense, dense) order (0, 2)", 2, "mode order (0, 2) is not a permutation of the 2 dimensions"),
        ("(dense, dense) order (0)", 2, "mode order (0,) is not a permutation of the 2 dimensions"),
        ("(dense, dense) order (1 0)", 2, "cannot read the format `(dense, dense) order (1 0)`"),
        ("(dense, dense", 2, "cannot read the format `(dense, dense`"),
        ("(dense, singleton)", 2, "a singleton level needs a compressed or singleton level above it"),
        ("(singleton)", 1, "a singleton level needs a compressed or singleton level above it"),
        ("(compressed(nonunique), dense)", 2, "below a nonunique level stands a singleton level"),
        ("(compressed(nonunique))", 1, "the last level is nonunique"),
        ("bsr", 2, "hint: use `csr`, and blocks beside it: `--block NAME=16x16`"),
        ("bsc(4, 8)", 2, "in a declaration `csc block 4x8`"),
    ],
)
def test_what_is_not_a_format_is_refused(text, rank, message):
    with pytest.raises(TensorError) as error:
        Format.parse(text, rank)
    assert message in str(error.value)


def test_every_short_name_parses():
    assert {name for name, _ in FULL} == set(SHORT_NAMES)


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
