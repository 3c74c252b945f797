"""What is known, needed and dead of programs, against recorded ones and against what programs compute."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import AttributesError
from fuseflow.propagation import Attribute, analyse, constant, pruned
from fuseflow.propagation.labeled import Entries

DATA = Path(__file__).parents[1] / "data" / "sparsity"
CASES = {case["name"]: case for case in json.loads((DATA / "propagation.json").read_text())}


def bits(text, shape):
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8), count=int(np.prod(shape))).astype(bool).reshape(shape)


def values(numbers, shape):
    return np.array([np.nan if number is None else number for number in numbers], float).reshape(shape)


@pytest.mark.parametrize("name", CASES)
def test_recorded_programs(name):
    case = CASES[name]
    shapes = case["shapes"]
    analysis = analyse(
        parse(case["program"]), {name: constant(values(numbers, shapes[name])) for name, numbers in case["initial"].items()}
    )
    for tensor, shape in shapes.items():
        assert np.array_equal(analysis.needed[tensor], bits(case["needed"][tensor], shape)), tensor
        assert np.array_equal(analysis.dead(tensor), bits(case["dead"][tensor], shape)), tensor
    for tensor, numbers in case["known"].items():
        np.testing.assert_allclose(analysis.known[tensor], values(numbers, shapes[tensor]), rtol=0, atol=1e-9)


PRODUCT = parse("tensor A[2, 2] dense\ntensor B[2, 2] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y")


@pytest.mark.parametrize("case", json.loads((DATA / "tesa_matmul.json").read_text()))
def test_products_of_the_published_artifact(case):
    given = {name: pruned(case[key]) for name, key in (("A", "in1"), ("B", "in2"), ("Y", "out"))}
    analysis = analyse(PRODUCT, given)
    for name, key in (("A", "in1_after"), ("B", "in2_after"), ("Y", "out_after")):
        assert np.array_equal(~analysis.dead(name), np.array(case[key], bool))


def test_all_masks_of_a_small_product():
    """An element matters if a path leads from it to an output that is not pruned. Masks that differ in the names of rows or of columns
    are the same: the rows of A and the columns of B are in order."""
    pairs = list(itertools.product((0, 1), repeat=2))
    lines = [np.array(two, bool) for two in itertools.combinations_with_replacement(pairs, 2)]
    masks = [np.array(two, bool) for two in itertools.product(pairs, repeat=2)]
    for a, b, y in itertools.product(lines, (columns.T for columns in lines), masks):
        analysis = analyse(PRODUCT, {"A": pruned(a), "B": pruned(b), "Y": pruned(y)})
        paths = a[:, :, None] & b[None] & y[:, None, :]  # i, k, j
        assert np.array_equal(~analysis.dead("A"), paths.any(2))
        assert np.array_equal(~analysis.dead("B"), paths.any(0))
        assert np.array_equal(~analysis.dead("Y"), paths.any(1))


def test_what_is_wrong_is_named():
    with pytest.raises(AttributesError, match="there is no tensor `AA`") as error:
        analyse(PRODUCT, {"AA": Attribute()})
    assert "did you mean `A`?" in error.value.hint
    with pytest.raises(AttributesError, match=r"`A`: the mask has the shape \[2, 3\], and the tensor has \[2, 2\]"):
        analyse(PRODUCT, {"A": pruned(np.ones((2, 3)))})


def test_a_mask_that_prunes_everything_makes_outputs_constant():
    analysis = analyse(PRODUCT, {"A": pruned(False)})
    assert (analysis.known["Y"] == 0).all()
    assert not analysis.needed["B"].any()


GCN = """
tensor A[7, 7] csr
tensor X[7, 5] dense
tensor W[5, 4] csr
tensor V[4, 3] csr
T[i, j] = sum(k) X[i, k] * W[k, j]
U[i, j] = sum(k) A[i, k] * T[k, j]
R[i, j] = relu(U[i, j])
P[i, j] = sum(k) R[i, k] * V[k, j]
S[i, j] = A[i, j] * (sum(k) P[i, k] * P[j, k])
Q[i, j] = relu(S[i, j])
Y[i, j] = sum(k) Q[i, k] * X[k, j]
output Y
"""


@pytest.mark.parametrize("seed", range(8))
def test_listed_entries_say_what_a_mask_says(seed):
    program, rng = parse(GCN), np.random.default_rng(seed)
    masks = {name: rng.random(program.declared[name].shape) < 0.3 for name in ("A", "W", "V")}
    listed = {**{name: pruned(mask) for name, mask in masks.items()}, "A": Attribute(crds=np.argwhere(masks["A"]).T)}
    whole, sparse = analyse(program, {name: pruned(mask) for name, mask in masks.items()}), analyse(program, listed)
    for name in whole.known:
        for first, second in (
            (whole.dead_mask(name), sparse.dead_mask(name)),
            (whole.needed_mask(name), sparse.needed_mask(name)),
        ):
            assert np.array_equal(first.whole(), second.whole()), name
            assert first.count() == second.count() == first.whole().sum()
            for mode in (0, 1):
                assert np.array_equal(first.along(mode), second.along(mode))
                assert np.array_equal((~first).along(mode), (~second).along(mode))
            places = np.argwhere(np.ones(first.shape)).T
            assert np.array_equal(first.at(places), second.at(places)) and np.array_equal(first.at(places), first.whole().ravel())
    assert isinstance(sparse.attributes["Q"], Entries) and "A" not in sparse.known


def test_what_is_wrong_with_listed_entries_is_said():
    with pytest.raises(AttributesError, match="leave"):
        analyse(PRODUCT, {"A": Attribute(crds=np.array([[0, 2], [0, 1]]))})
    with pytest.raises(AttributesError, match="implicit value 1"):
        analyse(parse("tensor A[2] csf f32 fill 1\nY[i] = A[i]\noutput Y"), {"A": Attribute(crds=np.array([[0]]))})
