"""What holds of every sparsifier: texts, types of tensors, fractions, and sparsifiers of the user."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.sparse import CSR
from fuseflow.sparsity.sparsifiers.built_in import (
    NM,
    NMG,
    BlockMagnitude,
    Filter,
    KeepAll,
    Magnitude,
    Movement,
    RandomFraction,
    Stored,
    Threshold,
    TopK,
)
from fuseflow.sparsity.sparsifiers.listing import SPARSIFIERS, parse_sparsifier, register_sparsifier
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, has_fraction, kept_count, with_fraction

FRACTIONS, DIMS = st.floats(0, 1), st.integers(-5, 5)
SIZES = st.integers(1, 8).flatmap(lambda m: st.tuples(st.integers(1, m), st.just(m)))
DRAWN = {
    KeepAll: st.just(KeepAll()),
    Stored: st.just(Stored()),
    RandomFraction: st.builds(RandomFraction, FRACTIONS, st.none() | st.integers(-(2**63), 2**64 - 1)),
    Threshold: st.builds(Threshold, st.floats(0, allow_nan=False)),
    NM: st.builds(lambda size, dim: NM(*size, dim), SIZES, DIMS),
    TopK: st.builds(TopK, st.integers(1, 10**9), DIMS),
    Magnitude: st.builds(Magnitude, FRACTIONS, st.sampled_from(["tensor", "model"])),
    BlockMagnitude: st.builds(BlockMagnitude, FRACTIONS, st.tuples(st.integers(1, 99), st.integers(1, 99))),
    Filter: st.builds(Filter, FRACTIONS),
    NMG: st.builds(
        lambda size, *rest: NMG(*size, *rest), SIZES, st.integers(1, 9), DIMS, DIMS, st.sampled_from(["exact", "greedy"])
    ),
    Movement: st.builds(Movement, FRACTIONS),
}
EXAMPLES = [
    *(
        KeepAll(),
        Stored(),
        RandomFraction(0.4, seed=1),
        Threshold(0.5),
        NM(2, 4),
        TopK(2),
        Magnitude(0.7),
        Magnitude(0.7, "model"),
    ),
    *(BlockMagnitude(0.5, (2, 2)), Filter(0.5), NMG(1, 2, 2), Movement(0.7)),
]


def test_every_sparsifier_is_tested_here():
    assert [*SPARSIFIERS.values()] == [*DRAWN] and {type(sparsifier) for sparsifier in EXAMPLES} == {*DRAWN}
    assert all(name == cls.name for name, cls in SPARSIFIERS.items())


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.name)
@given(data=st.data())
def test_a_text_says_the_sparsifier(cls, data):
    sparsifier = data.draw(DRAWN[cls])
    again = parse_sparsifier(str(sparsifier))
    assert again == sparsifier and type(again) is cls and hash(again) == hash(sparsifier) and str(again) == str(sparsifier)


@pytest.mark.parametrize(
    ("text", "sparsifier"),
    [
        ("keepall", KeepAll()),
        ("stored", Stored()),
        ("random:0.5", RandomFraction(0.5)),
        ("random:0.5:seed=3", RandomFraction(0.5, 3)),
        ("threshold:0.1", Threshold(0.1)),
        ("nm:2:4:dim=0", NM(2, 4, 0)),
        ("topk:8", TopK(8)),
        ("magnitude:0.9:scope=model", Magnitude(0.9, "model")),
        ("block:0.5:4x2", BlockMagnitude(0.5, (4, 2))),
        ("filter:0.5", Filter(0.5)),
        ("nmg:2:4:8:method=greedy", NMG(2, 4, 8, method="greedy")),
        ("movement:1.0", Movement(1.0)),
    ],
)
def test_texts_are_those_of_the_page(text, sparsifier):
    assert str(sparsifier) == text and parse_sparsifier(text) == sparsifier


@pytest.mark.parametrize(
    ("sparsifier", "share", "kind", "layout"),
    [
        (KeepAll(), 0.0, "streaming", "dense"),
        (Stored(), None, "streaming", "csr"),
        (RandomFraction(0.4), 0.4, "streaming", "csr"),
        (Threshold(0.5), None, "streaming", "csr"),
        (NM(1, 4), 0.75, "blocking", "nm:1:4"),
        (NM(1, 4, 0), 0.75, "blocking", "nm:1:4:dim=0"),
        (TopK(2), None, "blocking", "csr"),
        (Magnitude(0.7, "model"), 0.7, "materializing", "csr"),
        (BlockMagnitude(0.5, (2, 4)), 0.5, "materializing", "bcsr:2x4"),
        (Filter(0.25), 0.25, "materializing", "csr"),
        (NMG(1, 4, 2, 0, 1), 0.75, "materializing", "nmg:1:4:2:sparse_dim=0:group_dim=1"),
        (Movement(0.9), 0.9, "materializing", "csr"),
    ],
    ids=str,
)
def test_what_is_known_before_a_tensor_is_seen(sparsifier, share, kind, layout):
    assert (sparsifier.share, sparsifier.kind, str(sparsifier.layout)) == (share, kind, layout)


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_types_of_numbers_make_no_difference(sparsifier, dtype):
    tensor = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).to(dtype)
    mask = sparsifier.select(tensor, tensor)
    assert mask.dtype == torch.bool and mask.shape == tensor.shape
    assert torch.equal(mask, sparsifier.select(tensor.double(), tensor.double()))


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
def test_a_view_is_sparse_as_its_copy_is_and_stays_as_it_was(sparsifier):
    whole = torch.randn(16, 12, generator=torch.Generator().manual_seed(1))
    before = whole.clone()
    for view in (whole[::2, 4:], whole.T[::3], whole[:8, :1].expand(8, 4)):
        assert torch.equal(sparsifier.select(view, view), sparsifier.select(view.clone(), view.clone()))
    assert torch.equal(whole, before)


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
def test_a_parameter_is_sparse_as_its_numbers_are(sparsifier):
    weight = torch.nn.Parameter(torch.randn(4, 8, generator=torch.Generator().manual_seed(2)))
    mask = sparsifier.select(weight, weight)
    assert torch.equal(mask, sparsifier.select(weight.data, weight.data)) and not mask.requires_grad


@pytest.mark.parametrize("sparsifier", [s for s in EXAMPLES if not isinstance(s, TopK)], ids=str)
def test_of_an_empty_matrix_nothing_is_kept(sparsifier):
    for shape in ((0, 8), (8, 0), (0, 0)):
        assert sparsifier.select(torch.empty(shape), torch.empty(shape)).shape == shape


@pytest.mark.parametrize("sparsifier", [KeepAll(), RandomFraction(0.0), Threshold(0.5), Magnitude(0.5), Movement(0.5)], ids=str)
def test_a_number_is_a_tensor_of_one_entry(sparsifier):
    mask = sparsifier.select(torch.tensor(1.0), torch.tensor(1.0))
    assert mask.shape == () and mask.item() is True


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
def test_masks_of_several_tensors_are_their_masks(sparsifier):
    tensors = [torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    if sparsifier.needs_scores:
        with pytest.raises(SparsityError, match="nothing was trained yet"):
            sparsifier.select_together(tensors)
    elif not sparsifier.compares_tensors:
        for mask, tensor in zip(sparsifier.select_together(tensors), tensors, strict=True):
            assert torch.equal(mask, sparsifier.select(tensor))


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
def test_the_rule_of_the_compiler_keeps_the_same(sparsifier):
    from fuseflow import keep_rules

    tensor = torch.randint(-2, 3, (4, 8), generator=torch.Generator().manual_seed(3)).float()
    rule = sparsifier.keep_rule((4, 8))
    if rule is not None:
        kept = keep_rules.kept(rule.rule, tensor.numpy(), rule.dimensions)
        assert kept.tolist() == sparsifier.select(tensor).tolist()


def test_magnitude_has_a_rule_unless_it_keeps_nothing_or_compares_tensors():
    assert Magnitude(0.5).keep_rule((3, 5)).rule.count == 8
    assert Magnitude(1.0).keep_rule((3, 5)) is Magnitude(0.5, "model").keep_rule((3, 5)) is Magnitude(0.5).keep_rule((0,)) is None


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("cls", [RandomFraction, Magnitude, Filter, Movement, lambda f: BlockMagnitude(f, (2, 2))])
def test_a_fraction_is_between_0_and_1(cls, fraction):
    with pytest.raises(SparsityError, match=f"cannot leave out a fraction of {fraction}") as error:
        cls(fraction)
    assert "give a number from 0 to 1, as in" in error.value.hint


@pytest.mark.parametrize(("fraction", "size", "count"), [(0.5, 5, 3), (0.0, 5, 5), (1.0, 5, 0), (0.99, 5, 1), (0.9, 0, 0)])
def test_the_share_that_is_left_out_is_rounded_down(fraction, size, count):
    assert kept_count(fraction, size) == count
    assert Magnitude(fraction).select(torch.rand(size)).sum() == Filter(fraction).select(torch.rand(size, 2))[:, 0].sum() == count


@given(FRACTIONS, st.integers(0, 10**9))
def test_as_many_entries_are_kept_as_there_are(fraction, size):
    assert 0 <= kept_count(fraction, size) <= size


@pytest.mark.parametrize("sparsifier", EXAMPLES, ids=str)
def test_only_a_fraction_can_rise(sparsifier):
    if has_fraction(sparsifier):
        assert with_fraction(sparsifier, 0.125) == replace(sparsifier, fraction=0.125)
        with pytest.raises(SparsityError, match="cannot leave out a fraction of 2"):
            with_fraction(sparsifier, 2)
        return
    with pytest.raises(SparsityError, match=f"`{sparsifier}` has no fraction that could rise") as error:
        with_fraction(sparsifier, 0.5)
    assert error.value.hint == "a schedule is for magnitude, random, movement, block and filter"


def test_the_schedule_message_names_what_has_a_fraction():
    assert {s.name for s in EXAMPLES if has_fraction(s)} == {"magnitude", "random", "movement", "block", "filter"}


@dataclass(frozen=True)
class EveryOther(Sparsifier):
    """A sparsifier of a user."""

    name: ClassVar[str] = "everyother"
    kind: ClassVar[str] = "streaming"
    first: int = 0

    def select(self, tensor, scores=None):
        return (torch.arange(tensor.numel()) % 2 == self.first).reshape(tensor.shape)


@pytest.fixture
def listed(monkeypatch):
    """The list as it is, and as it will be after the test."""
    for name, cls in [*SPARSIFIERS.items()]:
        monkeypatch.setitem(SPARSIFIERS, name, cls)
    yield SPARSIFIERS
    SPARSIFIERS.pop(EveryOther.name, None)


def test_a_sparsifier_of_the_user_is_known_by_its_name(listed):
    assert register_sparsifier(EveryOther) is register_sparsifier(EveryOther) is EveryOther
    sparsifier = parse_sparsifier("everyother:first=1")
    assert sparsifier == EveryOther(1) and str(sparsifier) == "everyother:first=1" and str(EveryOther()) == "everyother"
    assert sparsifier.select(torch.zeros(3)).tolist() == [False, True, False]
    assert (sparsifier.share, sparsifier.layout, sparsifier.keep_rule((3,)), sparsifier.compares_tensors) == (
        None,
        CSR(),
        None,
        False,
    )


def test_a_name_that_is_taken_is_refused(listed):
    @dataclass(frozen=True)
    class Other(EveryOther):
        name: ClassVar[str] = "magnitude"

    with pytest.raises(SparsityError, match="there is a sparsifier `magnitude` already") as error:
        register_sparsifier(Other)
    assert error.value.hint == "give yours another `name`" and SPARSIFIERS["magnitude"] is Magnitude


def test_a_sparsifier_is_a_dataclass(listed):
    class Plain(Sparsifier):
        name = "plain"

    with pytest.raises(SparsityError, match="the sparsifier `Plain` is no dataclass") as error:
        register_sparsifier(Plain)
    assert "@dataclass(frozen=True)" in error.value.hint and "plain" not in SPARSIFIERS


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("magnitud:0.9", "there is no sparsifier `magnitud`", "did you mean `magnitude`?"),
        ("Magnitude:0.9", "there is no sparsifier `Magnitude`", "did you mean `magnitude`?"),
        ("", "there is no sparsifier ``", "known: "),
        (" topk:8", "there is no sparsifier ` topk`", "did you mean `topk`?"),
        ("magnitude", "`magnitude` lacks fraction", "magnitude:FRACTION[:scope=tensor]"),
        ("nm", "`nm` lacks n and m", "nm:N:M[:dim=-1]"),
        ("nm:2", "`nm:2` lacks m", "nm:N:M[:dim=-1]"),
        ("block:0.5", "`block:0.5` lacks block", "block:FRACTION:BLOCK"),
        ("keepall:1", "`keepall:1` says too much: `1`", "write it as `keepall`"),
        ("magnitude:0.9:tensor:1", "says too much: `1`", "magnitude:FRACTION[:scope=tensor]"),
        ("magnitude:0.9:fraction=0.8", "says `fraction` twice", ""),
        ("nm:2:4:dmi=0", "there is no `dmi`", "did you mean `dim`?"),
        ("magnitude:much", "`fraction` cannot be `much`", "number"),
        ("magnitude:", "`fraction` cannot be ``", "number"),
        ("magnitude:0.9:scope=layer", "`scope` cannot be `layer`", "'tensor' or 'model'"),
        ("magnitude:1.5", "`magnitude` cannot leave out a fraction of 1.5", "as in `magnitude:0.9`"),
        ("magnitude:nan", "`magnitude` cannot leave out a fraction of nan", "from 0 to 1"),
        ("threshold:-1", "`threshold:-1.0`: a threshold is a magnitude", "at least 0"),
        ("nm:4:2", "`nm:4:2`: 4 entries cannot be kept of every 2", "between 1 and 2"),
        ("nm:2:0", "`nm:2:0`: a group cannot have 0 coordinates", "between 1 and 256"),
        ("nm:2:4.5", "`m` cannot be `4.5`", "integer"),
        ("topk:0", "`topk:0` keeps nothing", "at least 1"),
        ("random:0.5:seed=x", "`seed` cannot be `x`", "integer"),
        ("random:0.5:seed=18446744073709551616", "PyTorch has no such seed", "at most 64 bits"),
        ("random:0.5:1:2", "says too much: `2`", "random:FRACTION[:seed=SEED]"),
        ("block:0.5:4", "`block` cannot be `4`", "write 2 whole numbers, as in `4x4`"),
        ("block:0.5:4x4x4", "`block` cannot be `4x4x4`", "2 whole numbers"),
        ("block:0.5:4xa", "`block` cannot be `4xa`", "2 whole numbers"),
        ("block:0.5:0x4", "a block has at least one row", "block:0.5:4x4"),
        ("nmg:2:4", "`nmg:2:4` lacks g", "nmg:N:M:G"),
        ("nmg:2:4:4:method=best", "`method` cannot be `best`", "'exact' or 'greedy'"),
    ],
)
def test_texts_that_say_no_sparsifier_are_refused_in_words(text, message, hint):
    with pytest.raises(SparsityError) as error:
        parse_sparsifier(text)
    assert message in error.value.message and hint in error.value.hint


@given(
    st.text(max_size=12)
    | st.builds(lambda n, r: ":".join([n, *r]), st.sampled_from([*SPARSIFIERS]), st.lists(st.text(max_size=6)))
)
def test_any_text_is_a_sparsifier_or_refused(text):
    try:
        sparsifier = parse_sparsifier(text)
    except SparsityError:
        return
    assert parse_sparsifier(str(sparsifier)) == sparsifier
