import pytest

from fuseflow.einsum.blocks import propagate_blocks, vectorize
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import ProgramError

GCN = """
tensor A[20, 20] csr
tensor X[20, 12]
tensor W[12, 6]
tensor b[6]
T[k, j] = sum(f) X[k, f] * W[f, j]
Y[i, j] = sum(k) A[i, k] * T[k, j] + b[j]
output Y
"""
HEADS = """
tensor Q[32, 24]
tensor K[32, 24]
q[h, i, d] = Q[i, h*8 + d]
k[h, i, d] = K[i, h*8 + d]
S[h, i, j] = sum(d) q[h, i, d] * k[h, j, d]
output S
"""


def blocks(program):
    return {t.name: t.block for t in program.tensors}


def test_what_one_index_runs_over_is_in_blocks_of_one_size():
    block_by_tensor = blocks(propagate_blocks(infer(parse(GCN)), {"A": (4, 4)}))
    assert block_by_tensor == {"A": (4, 4), "X": (4, 1), "W": (), "b": (), "T": (4, 1), "Y": (4, 1)}


def test_blocks_of_several_tensors_meet():
    block_by_tensor = blocks(propagate_blocks(infer(parse(GCN)), {"A": (8, 8), "W": (4, 2)}))
    assert block_by_tensor == {"A": (8, 8), "X": (8, 4), "W": (4, 2), "b": (2,), "T": (8, 2), "Y": (8, 2)}


def test_blocks_can_be_declared_and_are_printed():
    text = GCN.replace("A[20, 20] csr", "A[20, 20] csr block 4x4")
    program = propagate_blocks(infer(parse(text)))
    assert "tensor A[20, 20]  csr block 4x4\n" in show(program)
    assert "tensor T[20, 6]   dense block 4x1\n" in show(program)
    assert parse(show(program)) == program


def test_two_sizes_in_one_dimension():
    message = "dimension 0 of `X` cannot be in blocks of 2: it is in blocks of 4, as dimension 1 of `A` is, and one index runs over both"
    with pytest.raises(ProgramError, match=message):
        propagate_blocks(infer(parse(GCN)), {"A": (4, 4), "X": (2, 1)})


def test_a_dimension_that_comes_apart_is_in_blocks_of_its_inner_part():
    block_by_tensor = blocks(propagate_blocks(infer(parse(HEADS)), {"Q": (4, 2)}))
    assert block_by_tensor == {"Q": (4, 2), "K": (1, 2), "q": (1, 4, 2), "k": (1, 1, 2), "S": (1, 4, 1)}


def test_blocks_that_cross_the_parts_of_a_dimension():
    with pytest.raises(ProgramError, match="blocks of 3 along dimension 1 of `Q` cross the parts of 8"):
        propagate_blocks(infer(parse(HEADS)), {"Q": (4, 3)})


def test_a_tile_has_two_dimensions():
    program = infer(parse("tensor A[4, 4]\ntensor x[4]\nT[i, j, k] = A[i, j] * x[k]\noutput T"))
    with pytest.raises(ProgramError, match="`T` would be in blocks of 2x2x2: a tile has two dimensions at most"):
        propagate_blocks(program, {"A": (2, 2), "x": (2,)})


def test_vectors_lie_along_dense_innermost_dimensions():
    block_by_tensor = blocks(vectorize(infer(parse(GCN)), 4))
    assert block_by_tensor == {"A": (), "X": (), "W": (1, 4), "b": (4,), "T": (1, 4), "Y": (1, 4)}


def test_a_vector_is_no_longer_than_its_dimension():
    assert blocks(vectorize(infer(parse(GCN)), 64))["W"] == (1, 6)


def test_a_vector_divides_the_parts_of_a_dimension():
    assert blocks(vectorize(infer(parse(HEADS)), 12))["Q"] == (1, 8)
