import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import TensorError
from fuseflow.tensors import Format, pack
from fuseflow.tensors.blocks import (
    block_counts,
    check_block,
    from_blocks,
    parse_block,
    split_into_tiles,
    tile_dimensions,
    tile_shape,
    to_blocks,
)

FORMATS = {1: ["dense", "csf"], 2: ["dense", "csr", "csc", "dcsr", "coo", "(dense, dense) order (1, 0)"], 3: ["dense", "csf"]}


@st.composite
def cases(draw):
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=rank, max_size=rank)))
    block = [draw(st.sampled_from([1, 2, 3, 4, 16])) for _ in range(rank)]
    if rank == 3:
        block[draw(st.integers(0, 2))] = 1
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    array = rng.integers(1, 9, shape) * (rng.random(shape) < 0.4)
    return array.astype(np.float64), tuple(block), Format.parse(draw(st.sampled_from(FORMATS[rank])), rank)


@given(cases())
def test_blocks_hold_what_the_elements_were(case):
    array, block, format = case
    tensor = to_blocks(pack(array, format), block)
    assert tensor.tile == tile_shape(block)
    if tensor.tile:
        assert tensor.shape == block_counts(array.shape, block)
        np.testing.assert_array_equal(tensor.to_dense(), split_into_tiles(array, block, 0.0))
    back = from_blocks(tensor, array.shape, block)
    assert back.format == format
    np.testing.assert_array_equal(back.to_dense(), array)


def test_only_blocks_with_entries_are_stored():
    array = np.zeros((64, 64))
    array[3, 60] = array[5, 61] = 1.0
    tensor = to_blocks(pack(array, Format.parse("csr", 2)), (16, 8))
    assert (tensor.stored, tensor.nbytes) == (1, 5 * 4 + 4 + 16 * 8 * 8)


def test_the_rest_of_a_block_is_the_implicit_value():
    array = np.full((4, 4), -np.inf)
    array[0, 0] = 2.0
    tensor = to_blocks(pack(array, Format.parse("csr", 2), -np.inf), (2, 2))
    assert tensor.values.tolist() == [[[2.0, -np.inf], [-np.inf, -np.inf]]]


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [
        ("16", 2, "a block of 16 has 1 sizes, the tensor 2 dimensions"),
        ("16x0", 2, "its sizes are 1 to 1024"),
        ("4x2048", 2, "its sizes are 1 to 1024"),
        ("2x2x2", 3, "a block of 2x2x2 has 3 dimensions"),
        ("16 x 16", 2, "cannot read the block"),
    ],
)
def test_a_block_that_is_none(text, rank, message):
    with pytest.raises(TensorError, match=message):
        parse_block(text, rank)


def test_a_block_of_one_element_is_no_block():
    assert check_block((1, 1), 2) == ()


def test_blocks_have_at_most_two_long_sides():
    assert tile_dimensions((1, 1, 1)) == (None, None)
    with pytest.raises(TensorError, match="a block of 2x2x2 has 3 dimensions"):
        tile_dimensions((2, 2, 2))
