"""Formats: names, text, and which level may stand below which."""

from __future__ import annotations

import pytest

from fuseflow.errors import TensorError
from fuseflow.tensors import Format
from fuseflow.tensors.format import SHORT_NAMES

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
