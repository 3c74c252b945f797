"""The list of layouts: texts, what names a layout, and layouts of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import Dense, DenseTensor, Layout, Masked, MaskedSparseTensor
from fuseflow.sparsity.layouts.listing import LAYOUTS, as_layout, parse_layout, register_layout
from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor, NMGLayout, NMLayout, NMTensor
from fuseflow.sparsity.layouts.sparse import BCSR, COO, CSC, CSR, ELL, BcsrTensor, CooTensor, CscTensor, CsrTensor, EllTensor

DIMS = st.integers(-5, 5)
SIZES = st.integers(1, 8).flatmap(lambda m: st.tuples(st.integers(1, m), st.just(m)))
DRAWN = {
    Dense: st.just(Dense()),
    Masked: st.just(Masked()),
    COO: st.just(COO()),
    CSR: st.just(CSR()),
    CSC: st.just(CSC()),
    BCSR: st.builds(BCSR, st.tuples(st.integers(1, 999), st.integers(1, 999))),
    ELL: st.just(ELL()),
    NMLayout: st.builds(lambda size, dim: NMLayout(*size, dim), SIZES, DIMS),
    NMGLayout: st.builds(lambda size, *rest: NMGLayout(*size, *rest), SIZES, st.integers(1, 9), DIMS, DIMS),
}


def test_every_layout_is_tested_here():
    assert [*LAYOUTS.values()] == [*DRAWN] and all(name == cls.name for name, cls in LAYOUTS.items())


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.name)
@given(data=st.data())
def test_a_text_says_the_layout(cls, data):
    layout = data.draw(DRAWN[cls])
    again = parse_layout(str(layout))
    assert again == layout and type(again) is cls and str(again) == str(layout) and as_layout(again) is again


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("bcsr:4x2", BCSR((4, 2))),
        ("nm:2:4", NMLayout(2, 4)),
        ("nm:2:4:dim=0", NMLayout(2, 4, 0)),
        ("nmg:2:4:8:sparse_dim=0:group_dim=1", NMGLayout(2, 4, 8, 0, 1)),
        *((name, cls()) for name, cls in LAYOUTS.items() if cls in (Dense, Masked, COO, CSR, CSC, ELL)),
    ],
)
def test_texts_are_those_of_the_page(text, layout):
    assert str(layout) == text and parse_layout(text) == layout


@pytest.mark.parametrize(
    ("value", "layout"),
    [
        *((cls, cls()) for cls in (Dense, Masked, COO, CSR, CSC, ELL)),
        *((cls.storage, cls()) for cls in (Dense, Masked, COO, CSR, CSC, ELL)),
        (torch.Tensor, Dense()),
        (DenseTensor, Dense()),
        (CSR(), CSR()),
        (NMLayout(2, 4), NMLayout(2, 4)),
    ],
)
def test_what_names_a_layout(value, layout):
    assert as_layout(value) == layout


def test_every_storage_class_is_of_one_layout():
    classes = [DenseTensor, MaskedSparseTensor, CooTensor, CsrTensor, CscTensor, BcsrTensor, EllTensor, NMTensor, GroupedNMTensor]
    assert [cls.storage for cls in LAYOUTS.values()] == classes


@pytest.mark.parametrize(
    ("value", "name", "hint"),
    [
        (BCSR, "bcsr", "write `BCSR(...)`, as in bcsr:BLOCK"),
        (BcsrTensor, "bcsr", "write `BCSR(...)`, as in bcsr:BLOCK"),
        (NMLayout, "nm", "write `NMLayout(...)`, as in nm:N:M[:dim=-1]"),
        (NMTensor, "nm", "write `NMLayout(...)`, as in nm:N:M[:dim=-1]"),
        (GroupedNMTensor, "nmg", "write `NMGLayout(...)`, as in nmg:N:M:G[:sparse_dim=-2][:group_dim=-1]"),
    ],
)
def test_a_class_with_parameters_is_no_layout_yet(value, name, hint):
    with pytest.raises(SparsityError, match=f"the layout `{name}` needs parameters") as error:
        as_layout(value)
    assert error.value.hint == hint


@pytest.mark.parametrize("value", [None, "csr", 3, int, Layout, torch.zeros(2), torch.sparse_csr, {1}], ids=str)
def test_anything_else_is_no_layout(value):
    with pytest.raises(SparsityError, match="is no layout") as error:
        as_layout(value)
    assert error.value.hint == "known: Dense, Masked, COO, CSR, CSC, BCSR, ELL, NMLayout, NMGLayout"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("scr", "there is no layout `scr`", "did you mean `csr`?"),
        ("CSR", "there is no layout `CSR`", "did you mean `csr`?"),
        ("", "there is no layout ``", "known: `bcsr`, `coo`, `csc`"),
        ("csr:4x4", "`csr:4x4` says too much: `4x4`", "write it as `csr`"),
        ("bcsr", "`bcsr` lacks block", "write it as `bcsr:BLOCK`"),
        ("bcsr:4", "`bcsr:4`: `block` cannot be `4`", "write 2 whole numbers, as in `4x4`"),
        ("bcsr:0x4", "a block has at least one row and one column", "as in `bcsr:4x4`"),
        ("bcsr:4x-4", "a block has at least one row and one column", "as in `bcsr:4x4`"),
        ("nm:2", "`nm:2` lacks m", "nm:N:M[:dim=-1]"),
        ("nm:3:2", "`nm:3:2`: 3 entries cannot be kept of every 2", "between 1 and 2"),
        ("nm:1:0", "`nm:1:0`: a group cannot have 0 coordinates", "between 1 and 256"),
        ("nm:1:300", "`nm:1:300`: a group cannot have 300 coordinates", "between 1 and 256"),
        ("nmg:2:4:0", "a pattern cannot have 0 columns", "at least 1"),
        ("nmg:2:4:4:method=exact", "there is no `method`", "known: `g`, `group_dim`, `m`, `n`, `sparse_dim`"),
    ],
)
def test_texts_that_say_no_layout_are_refused_in_words(text, message, hint):
    with pytest.raises(SparsityError) as error:
        parse_layout(text)
    assert message in error.value.message and hint in error.value.hint


@dataclass(frozen=True)
class Diagonal(Layout):
    """A layout of a user."""

    name: ClassVar[str] = "diagonal"
    storage: ClassVar[type] = DenseTensor

    def pack(self, tensor, mask):
        return DenseTensor(tensor * mask)


def test_a_layout_of_the_user_is_known_by_its_name(monkeypatch):
    monkeypatch.setitem(LAYOUTS, "diagonal", Diagonal)
    assert register_layout(Diagonal) is Diagonal
    assert parse_layout("diagonal") == as_layout(Diagonal) == Diagonal() and str(Diagonal()) == "diagonal"
    assert Diagonal().refusal(torch.ones(3).bool()) == "" and Diagonal().compiler_format((3,)) is None
    assert as_layout(DenseTensor) == Dense()


def test_a_new_layout_is_added(monkeypatch):
    before = dict(LAYOUTS)
    try:
        register_layout(Diagonal)
        assert {**before, "diagonal": Diagonal} == LAYOUTS
    finally:
        LAYOUTS.pop("diagonal")


def test_a_name_that_is_taken_is_refused():
    @dataclass(frozen=True)
    class Other(Diagonal):
        name: ClassVar[str] = "csr"

    with pytest.raises(SparsityError, match="there is a layout `csr` already") as error:
        register_layout(Other)
    assert error.value.hint == "give yours another `name`" and LAYOUTS["csr"] is CSR


def test_a_layout_is_a_dataclass():
    class Plain(Layout):
        name = "plain"

    with pytest.raises(SparsityError, match="the layout `Plain` is no dataclass") as error:
        register_layout(Plain)
    assert "@dataclass(frozen=True)" in error.value.hint and "plain" not in LAYOUTS
