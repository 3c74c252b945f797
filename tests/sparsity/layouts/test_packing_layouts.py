"""What layouts store, against the sparse tensors of PyTorch and loops over the entries."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import CompilerFormat, Dense, Masked, require_fit
from fuseflow.sparsity.layouts.listing import LAYOUTS
from fuseflow.sparsity.layouts.n_of_m import NMGLayout, NMLayout
from fuseflow.sparsity.layouts.sparse import BCSR, COO, CSC, CSR, ELL, majors
from fuseflow.sparsity.sparsifiers.built_in import NMG
from fuseflow.tensors.format import Format

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SIZES = st.integers(1, 5).flatmap(lambda m: st.tuples(st.integers(1, m), st.just(m)))


def drawn_tensor(draw, shape):
    """A tensor without zeros, so that what is stored can be told from what is not, and a mask of it."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    tensor = torch.randint(1, 9, shape, generator=generator).to(draw(st.sampled_from(DTYPES)))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.1]))
    return tensor, torch.rand(shape, generator=generator) < share


def shapes(low, high, rank=None):
    ranks = (rank, rank) if rank else (1, 4)
    return st.lists(st.integers(low, high), min_size=ranks[0], max_size=ranks[1]).map(tuple)


@st.composite
def of_any_rank(draw, cls):
    return cls(), *drawn_tensor(draw, draw(shapes(0, 5)))


@st.composite
def of_a_matrix(draw, cls):
    return cls(), *drawn_tensor(draw, draw(shapes(0, 6, rank=2)))


@st.composite
def of_blocks(draw):
    block, counts = draw(shapes(1, 3, rank=2)), draw(shapes(0, 4, rank=2))
    return BCSR(block), *drawn_tensor(draw, (block[0] * counts[0], block[1] * counts[1]))


@st.composite
def of_groups(draw):
    shape, (n, m) = draw(shapes(0, 7)), draw(SIZES)
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    tensor, mask = drawn_tensor(draw, shape)
    rows = torch.nn.functional.pad(mask.movedim(dim, -1), (0, -shape[dim] % m)).unflatten(-1, (-(-shape[dim] // m), m)).long()
    before = (rows.cumsum(-1) - rows).flatten(-2)[..., : shape[dim]]
    return NMLayout(n, m, dim), tensor, mask & (before < n).movedim(-1, dim)


@st.composite
def of_patterns(draw):
    n, m = draw(st.sampled_from([(1, 1), (1, 2), (2, 3), (2, 4), (1, 4)]))
    g, shape = draw(st.integers(1, 2)), draw(st.lists(st.integers(0, 9), min_size=2, max_size=3))
    sparse_dim, group_dim = draw(st.permutations(range(len(shape))))[:2]
    layout = NMGLayout(n, m, g, sparse_dim, group_dim)
    tensor, wanted = drawn_tensor(draw, tuple(shape))
    mask = NMG(n, m, g, sparse_dim, group_dim).select(torch.rand(shape, generator=torch.Generator().manual_seed(0)))
    return layout, tensor, mask & wanted if draw(st.booleans()) else mask


DRAWN = {
    Dense: of_any_rank(Dense),
    Masked: of_any_rank(Masked),
    COO: of_any_rank(COO),
    CSR: of_a_matrix(CSR),
    CSC: of_a_matrix(CSC),
    BCSR: of_blocks(),
    ELL: of_a_matrix(ELL),
    NMLayout: of_groups(),
    NMGLayout: of_patterns(),
}


def test_every_layout_is_tested_here():
    assert [*LAYOUTS.values()] == [*DRAWN]


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.name)
@settings(max_examples=60)
@given(data=st.data())
def test_what_is_stored_is_what_the_mask_keeps(cls, data):
    layout, tensor, mask = data.draw(DRAWN[cls])
    whole, asked = tensor.clone(), mask.clone()
    assert layout.refusal(mask) == ""
    stored = layout.pack(tensor, mask)
    dense = stored.to_dense()
    assert isinstance(stored, layout.storage) and dense.dtype == tensor.dtype and dense.shape == tensor.shape
    assert torch.equal(dense, tensor * mask)
    assert torch.equal(tensor, whole) and torch.equal(mask, asked)


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.name)
@settings(max_examples=25)
@given(data=st.data())
def test_views_are_stored_as_their_copies(cls, data):
    layout, tensor, mask = data.draw(DRAWN[cls])
    spread = torch.zeros([2 * extent for extent in tensor.shape], dtype=tensor.dtype)[(slice(None, None, 2),) * tensor.dim()]
    turned = tensor.permute(*reversed(range(tensor.dim()))).contiguous().permute(*reversed(range(tensor.dim())))
    for view in (spread.copy_(tensor), turned):
        assert torch.equal(layout.pack(view, mask).to_dense(), tensor * mask)


@pytest.mark.parametrize(
    "layout", [Dense(), Masked(), COO(), CSR(), CSC(), BCSR((2, 2)), ELL(), NMLayout(4, 4), NMGLayout(4, 4, 1)]
)
def test_a_parameter_is_stored_without_its_history(layout):
    weight = torch.nn.Parameter(torch.randn(4, 4))
    stored = layout.pack(weight, torch.ones(4, 4, dtype=torch.bool)).to_dense()
    assert not stored.requires_grad and type(stored) is torch.Tensor and torch.equal(stored, weight.data)


@pytest.mark.parametrize(
    "layout", [Dense(), Masked(), COO(), CSR(), CSC(), BCSR((1, 1)), ELL(), NMLayout(1, 2), NMGLayout(1, 2, 1)]
)
def test_a_zero_that_is_kept_is_stored(layout):
    tensor, mask = torch.zeros(2, 2), torch.eye(2, dtype=torch.bool)
    stored = layout.pack(tensor, mask)
    assert not stored.to_dense().any()
    if layout.name not in ("dense", "masked"):
        assert stored.values.numel() == 2


def matrices(blocks=(1, 1)):
    """Matrices with the entries that their mask keeps, for PyTorch to compress."""

    @st.composite
    def drawn(draw):
        counts = draw(shapes(0, 6, rank=2))
        tensor, mask = drawn_tensor(draw, (counts[0] * blocks[0], counts[1] * blocks[1]))
        return tensor.float(), mask, (tensor * mask).float()

    return drawn()


@given(matrices())
def test_rows_are_compressed_as_pytorch_does(drawn):
    tensor, mask, masked = drawn
    stored, expected = CSR().pack(tensor, mask), masked.to_sparse_csr()
    assert torch.equal(stored.positions, expected.crow_indices()) and torch.equal(stored.columns, expected.col_indices())
    assert torch.equal(stored.values, expected.values())


@given(matrices())
def test_columns_are_compressed_as_pytorch_does(drawn):
    tensor, mask, masked = drawn
    stored, expected = CSC().pack(tensor, mask), masked.to_sparse_csc()
    assert torch.equal(stored.positions, expected.ccol_indices()) and torch.equal(stored.rows, expected.row_indices())
    assert torch.equal(stored.values, expected.values())


@given(matrices(blocks=(2, 3)))
def test_blocks_are_compressed_as_pytorch_does(drawn):
    tensor, mask, masked = drawn
    assume(masked.numel())
    stored, expected = BCSR((2, 3)).pack(tensor, mask), masked.to_sparse_bsr((2, 3))
    assert torch.equal(stored.positions, expected.crow_indices()) and torch.equal(stored.columns, expected.col_indices())
    assert torch.equal(stored.values, expected.values())


@given(st.data())
def test_coordinates_are_those_of_pytorch(data):
    tensor, mask = drawn_tensor(data.draw, data.draw(shapes(0, 5)))
    stored, expected = COO().pack(tensor, mask), (tensor * mask).to_sparse_coo().coalesce()
    assert torch.equal(stored.indices, expected.indices()) and torch.equal(stored.values, expected.values())
    assert stored.indices.is_contiguous()


@given(matrices())
def test_equal_rows_store_the_entries_of_each_row_in_order_and_then_zeros_of_column_0(drawn):
    tensor, mask, _ = drawn
    stored = ELL().pack(tensor, mask)
    width = max((sum(row) for row in mask.tolist()), default=0)
    assert stored.columns.shape == stored.values.shape == (len(tensor), width)
    for row, kept in enumerate(mask.tolist()):
        columns = [column for column, keeps in enumerate(kept) if keeps]
        filling = [0] * (width - len(columns))
        assert stored.columns[row].tolist() == columns + filling
        assert stored.values[row].tolist() == [tensor[row, column].item() for column in columns] + filling


def test_groups_store_their_entries_in_order():
    tensor = torch.arange(1.0, 11).reshape(2, 5)
    mask = torch.tensor([[0, 1, 0, 1, 1], [1, 0, 0, 0, 0]]).bool()
    stored = NMLayout(2, 4).pack(tensor, mask)
    assert stored.offsets.dtype == torch.uint8 and stored.offsets.shape == stored.values.shape == (2, 2, 2)
    assert stored.offsets[0].tolist()[0] == [1, 3] and stored.values.tolist() == [[[2, 4], [5, 0]], [[6, 0], [0, 0]]]
    assert (stored.m, stored.dim, stored.shape) == (4, 1, (2, 5))


def test_offsets_reach_the_last_place_of_the_largest_group():
    mask = torch.zeros(256, dtype=torch.bool).index_fill(0, torch.tensor([255]), True)
    stored = NMLayout(1, 256).pack(torch.ones(256), mask)
    assert stored.offsets.tolist() == [[255]] and torch.equal(stored.to_dense(), mask.float())


def test_a_masked_tensor_has_a_mask_of_its_own():
    mask = torch.tensor([True, False])
    stored = Masked().pack(torch.ones(2), mask)
    mask.fill_(True)
    assert stored.mask.tolist() == [True, False] and stored.to_dense().tolist() == [1, 0]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3), max_size=6))
def test_positions_say_the_row_of_every_entry(counts):
    positions = torch.tensor([0, *counts]).cumsum(0)
    assert majors(positions, sum(counts)).tolist() == [row for row, count in enumerate(counts) for _ in range(count)]


def with_one(shape, *places):
    mask = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        mask[place] = True
    return mask


@pytest.mark.parametrize("layout", [CSR(), CSC(), ELL(), BCSR((1, 1))], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2, 2)])
def test_layouts_of_matrices_take_matrices_alone(layout, shape):
    assert (
        layout.refusal(torch.ones(shape, dtype=torch.bool)) == f"it has {len(shape)} dimensions, and the layout is for matrices"
    )


@pytest.mark.parametrize("shape", [(5, 6), (4, 7), (1, 1)])
def test_blocks_divide_a_matrix(shape):
    reason = f"{shape[0]} x {shape[1]} does not divide into blocks of 2 x 3"
    assert BCSR((2, 3)).refusal(torch.ones(shape, dtype=torch.bool)) == reason


@pytest.mark.parametrize(
    ("layout", "mask", "reason"),
    [
        (NMLayout(1, 2), with_one((2, 4), (1, 2), (1, 3)), "more than 1 entries are kept at coordinates (1, 2..3)"),
        (NMLayout(1, 2), torch.ones(2, 4).bool(), "more than 1 entries are kept at coordinates (0, 0..1)"),
        (NMLayout(1, 2, 0), with_one((4, 3), (2, 1), (3, 1)), "more than 1 entries are kept at coordinates (2..3, 1)"),
        (NMLayout(1, 4), with_one((6,), 4, 5), "more than 1 entries are kept at coordinates (4..5)"),
        (
            NMLayout(1, 2, 1),
            with_one((2, 4, 2), (1, 2, 1), (1, 3, 1)),
            "more than 1 entries are kept at coordinates (1, 2..3, 1)",
        ),
        (NMLayout(1, 2, 2), torch.ones(2, 4).bool(), "it has 2 dimensions, and none is 2"),
        (NMLayout(1, 2, -3), torch.ones(2, 4).bool(), "it has 2 dimensions, and none is -3"),
        (NMLayout(1, 2), torch.tensor(True), "it has 0 dimensions, and none is -1"),
    ],
)
def test_groups_that_keep_too_much_are_named(layout, mask, reason):
    assert layout.refusal(mask) == reason


def test_patterns_that_do_not_fit_are_named():
    mask = with_one((2, 2), (0, 0), (0, 1))
    reason = NMGLayout(1, 2, 1).refusal(mask)
    assert reason.startswith("no selection 1:2:1 keeps all of the mask") and reason.endswith(
        "lacks 1 of 2 elements, the first at (0, 1)"
    )
    assert "`group_dim` are both dimension 0" in NMGLayout(1, 2, 1, 0, 0).refusal(mask)
    assert "has 1 dimensions" in NMGLayout(1, 2, 1).refusal(torch.ones(4).bool())


def test_a_tensor_that_does_not_fit_is_named_with_what_would():
    require_fit(NMLayout(1, 2), with_one((2, 2), (0, 0), (1, 1)), "layer.weight")
    with pytest.raises(SparsityError) as error:
        require_fit(NMLayout(1, 2), torch.ones(2, 2).bool(), "layer.weight")
    assert (
        error.value.message
        == "`layer.weight` cannot be stored as `nm:1:2`: more than 1 entries are kept at coordinates (0, 0..1)"
    )
    assert "`coo` and `masked` hold any mask" in error.value.hint


@pytest.mark.parametrize(
    ("layout", "shape", "text", "block"),
    [
        (Dense(), (2, 3), "dense", ()),
        (Masked(), (2, 3), "dense", ()),
        (COO(), (3,), "(compressed)", ()),
        (COO(), (2, 3), "coo", ()),
        (COO(), (2, 3, 4), "coo", ()),
        (CSR(), (2, 3), "csr", ()),
        (CSC(), (2, 3), "csc", ()),
        (ELL(), (2, 3), "csr", ()),
        (BCSR((2, 4)), (4, 8), "csr", (2, 4)),
        (NMLayout(2, 4), (8,), "(nm(2:4))", ()),
        (NMLayout(2, 4), (8, 8), "(dense, nm(2:4))", ()),
        (NMLayout(2, 4, 0), (8, 8), "(dense, nm(2:4)) order (1, 0)", ()),
        (NMLayout(2, 4, -2), (8, 8, 8), "(dense, dense, nm(2:4)) order (0, 2, 1)", ()),
        (NMGLayout(2, 4, 3), (8, 8), "(dense, nm(2:4)) order (1, 0)", ()),
    ],
    ids=str,
)
def test_formats_of_the_compiler(layout, shape, text, block):
    assert layout.compiler_format(shape) == CompilerFormat(text, block)
    assert Format.parse(text, len(shape)).rank == len(shape)


LAYOUTS_OF_FOUR = [Dense(), Masked(), COO(), CSR(), CSC(), BCSR((2, 2)), ELL(), NMLayout(1, 2), NMGLayout(1, 2, 1)]


@pytest.mark.parametrize("layout", LAYOUTS_OF_FOUR, ids=str)
def test_not_finite_numbers_stay_where_they_are_kept_and_are_0_elsewhere(layout):
    mask = torch.eye(4).bool()
    assert layout.refusal(mask) == ""
    for number in (math.nan, math.inf, -math.inf):
        tensor = torch.full((4, 4), number)
        dense = layout.pack(tensor, mask).to_dense()
        torch.testing.assert_close(dense, torch.where(mask, tensor, 0.0), equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS_OF_FOUR, ids=str)
def test_what_is_not_kept_has_no_sign(layout):
    dense = layout.pack(torch.full((4, 4), -1.0), torch.eye(4).bool()).to_dense()
    assert torch.equal(dense.signbit(), torch.eye(4).bool())
