"""Programs without what their outputs do not need: what goes, what stays, and that they compute the same."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from attribute_fuzz import run

from fuseflow.einsum.parse import parse
from fuseflow.propagation import Propagation, analyse, constant, propagate, pruned
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import pack_declared

RNG = np.random.default_rng(0)
MLP = """
tensor X[3, 4] dense
tensor W1[4, 5] csr
tensor b[5] dense
tensor W2[5, 2] csr
H[i, j] = sum(k) X[i, k] * W1[k, j]
R[i, j] = relu(H[i, j] + b[j])
Y[i, l] = sum(j) R[i, j] * W2[j, l]
output Y
"""


def mask(*zeros: tuple[int | slice, ...], shape: tuple[int, ...]) -> np.ndarray:
    kept = np.ones(shape, bool)
    for place in zeros:
        kept[place] = False
    return kept


def propagated(text: str, masks: dict[str, np.ndarray], values: dict[str, np.ndarray] | None = None) -> tuple[Propagation, float]:
    """Return a program without what it does not need, and by how much its outputs differ."""
    program, rng = parse(text), np.random.default_rng(0)
    given = {name: pruned(kept) for name, kept in masks.items()} | {n: constant(v) for n, v in (values or {}).items()}
    analysis = analyse(program, given)
    known = analysis.known
    arrays = {t.name: np.where(np.isnan(known[t.name]), rng.normal(size=t.shape), known[t.name]) for t in analysis.program.inputs}
    tensors = {t.name: pack_declared(arrays[t.name].astype(np.float32), t) for t in analysis.program.inputs}
    arrays = {name: tensor.to_dense().astype(np.float64) for name, tensor in tensors.items()}
    propagation = propagate(program, tensors, analysis)
    left = {name: tensor.to_dense().astype(np.float64) for name, tensor in propagation.tensors.items()}
    expected, smaller = run(program, arrays, None, rng), run(propagation.program, left, None, rng)
    outputs = propagation.restored({name: pack_dense(smaller[name]) for name in program.outputs})
    return propagation, max(np.abs(outputs[name].to_dense() - expected[name]).max(initial=0) for name in program.outputs)


def pack_dense(array: np.ndarray) -> Tensor:
    from fuseflow.tensors import Format, pack

    return pack(array, Format.dense(array.ndim))


def shapes(propagation: Propagation) -> dict[str, tuple[int, ...]]:
    return {tensor.name: tensor.shape for tensor in propagation.program.tensors}


def test_rows_of_the_next_weight_that_are_pruned_cut_features_out_of_all_before():
    propagation, error = propagated(MLP, {"W2": mask((1,), (3,), shape=(5, 2))})
    assert shapes(propagation) == {"X": (3, 4), "W1": (4, 3), "b": (3,), "W2": (3, 2)}
    assert error < 1e-12


def test_a_feature_that_only_a_bias_makes_stays():
    """Columns of W1 are pruned, but `relu(b)` is not known to be 0."""
    propagation, error = propagated(MLP, {"W1": mask((slice(None), 2), shape=(4, 5))})
    assert shapes(propagation) == {"X": (3, 4), "W1": (4, 5), "b": (5,), "W2": (5, 2)}
    assert error < 1e-12


@pytest.mark.parametrize(("bias", "features"), [(-1.0, 4), (0.0, 4), (0.5, 5)])
def test_a_known_bias_decides_whether_a_feature_goes(bias, features):
    propagation, error = propagated(MLP, {"W1": mask((slice(None), 2), shape=(4, 5))}, {"b": np.full(5, bias)})
    assert shapes(propagation)["W2"] == (features, 2)
    assert error < 1e-12


def test_a_known_number_that_is_not_needed_stays_if_a_known_number_comes_of_it():
    """N is 0*s + b, and so known, and b is not needed: without it, N would be 0."""
    text = """
    tensor s[3] dense
    tensor z[3] csf
    tensor b[3] dense
    tensor x[3] dense
    N[i] = z[i] * s[i] + b[i]
    Y[i] = x[i] * N[i]
    output Y
    """
    propagation, error = propagated(text, {"z": np.zeros(3, bool)}, {"b": np.full(3, -0.25)})
    assert propagation.tensors["b"].stored == 3
    assert error < 1e-12


def test_coordinates_of_outputs_are_put_back():
    text = "tensor A[3, 4] csr\ntensor B[4, 5] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    propagation, error = propagated(text, {"A": mask((1,), shape=(3, 4)), "B": mask((slice(None), 0), (2,), shape=(4, 5))})
    assert shapes(propagation) == {"A": (2, 3), "B": (3, 4)}
    assert error < 1e-12


def test_a_mask_that_prunes_everything_leaves_outputs_that_are_constant():
    text = "tensor A[3, 4] csr\ntensor B[4, 5] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    propagation, error = propagated(text, {"A": np.zeros((3, 4), bool)})
    assert shapes(propagation) == {"A": (1, 1), "B": (1, 1)}
    assert error == 0


def test_statements_that_add_nothing_go():
    text = """
    tensor X[3, 4] dense
    tensor W[4, 3] csr
    tensor V[4, 3] csr
    P[i, j] = sum(k) X[i, k] * W[k, j]
    Q[i, j] = sum(k) X[i, k] * V[k, j]
    Y[i, j] = P[i, j] + Q[i, j]
    output Y
    """
    propagation, error = propagated(text, {"V": np.zeros((4, 3), bool)})
    assert [einsum.name for einsum in propagation.program.einsums] == ["P", "Y"]
    assert set(propagation.tensors) == {"X", "W"}
    assert error < 1e-12


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("Y[i, l] = sum(j) R[i, j] * W2[j, l] + max(m) R[i, m]", "a maximum sees the zeros, too"),
        ("Y[i, l] = sum(j) (R[i, j] * W2[j, l] + R[i, j])", "another product needs the feature"),
    ],
)
def test_features_that_something_else_sees_stay(statement, why):
    text = MLP.replace("Y[i, l] = sum(j) R[i, j] * W2[j, l]", statement)
    propagation, error = propagated(text, {"W2": mask((1,), shape=(5, 2))})
    assert shapes(propagation)["W1"] == (4, 5), why
    assert error < 1e-12


def test_dimensions_whose_coordinates_mean_more_than_a_place_stay():
    grouped = MLP.replace("tensor W2[5, 2] csr", "tensor W2[5, 2] (dense, nm(2:2))")
    assert shapes(propagated(grouped, {"W2": mask((1,), (3,), shape=(5, 2))})[0])["W1"] == (4, 5)
    compared = MLP.replace("R[i, j] = relu(H[i, j] + b[j])", "R[i, j] = keep(2 of 4 over j) relu(H[i, j] + b[j])")
    assert shapes(propagated(compared, {"W2": mask((1,), shape=(5, 2))})[0])["W1"] == (4, 5)
    heads = "tensor X[3, 4] dense\ntensor W[2, 2] csr\nY[i, h] = sum(d) X[i, h*2 + d] * W[h, d]\noutput Y"
    assert shapes(propagated(heads, {"W": mask((1,), shape=(2, 2))})[0]) == {"X": (3, 4), "W": (2, 2)}


def test_groups_of_entries_that_are_compared_stay_as_they_are():
    """Without column 0, the groups of two would be others."""
    text = "tensor X[4, 6] csr\nY[i, j] = keep(1 of 2 over j) X[i, j]\noutput Y"
    propagation, error = propagated(text, {"X": mask((slice(None), 0), (1,), shape=(4, 6))})
    assert shapes(propagation) == {"X": (3, 6)}
    assert error == 0


def test_what_is_compared_is_needed():
    analysis = analyse(parse("tensor X[2, 4] dense\nT[i, j] = keep(1 over j) X[i, j]\nY[i] = T[i, 2]\noutput Y"))
    assert analysis.needed["X"].all()


def test_terms_of_a_known_sum_stay():
    """N is known, so that nothing needs z: but without its coordinates, N would be another number."""
    text = "tensor z[3, 2] dense\ntensor x[3] dense\nN[i] = sum(k) z[i, k]\nY[i] = x[i] * N[i]\noutput Y"
    propagation, error = propagated(text, {}, {"z": np.full((3, 2), 2.0)})
    assert shapes(propagation) == {"z": (3, 2), "x": (3,)}
    assert error < 1e-12


def test_what_is_read_beyond_a_tensor_is_known_to_be_0():
    analysis = analyse(parse("tensor x[4]\ntensor y[4]\ny[i] = x[i + 1]\noutput y"))
    assert np.array_equal(analysis.known["y"], [np.nan, np.nan, np.nan, 0], equal_nan=True)
    assert analysis.needed["x"].tolist() == [False, True, True, True]


def united(steps, known, needed):
    """Algorithm 1 as it is published: an element is pruned as soon as one of its neighbours does not need it."""
    needed, uses = dict(needed), {}
    for step in reversed(steps):
        for name, bits in step.needed(known, needed):
            needed[name] = uses[name] = uses.get(name, True) & bits
    return needed


def test_the_published_union_is_wrong_where_a_tensor_is_read_twice():
    text = (
        "tensor X[3, 4] csr\ntensor W[4, 4] csr\nP[i, j] = sum(k) X[i, k] * W[k, j]\nY[i, j] = X[i, j] + relu(P[i, j])\noutput Y"
    )
    kept = {"W": mask((0,), shape=(4, 4))}
    assert propagated(text, kept)[1] < 1e-12
    with patch("fuseflow.propagation.analysis.needed_before", united):
        assert propagated(text, kept)[1] > 0.1
