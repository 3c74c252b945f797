"""NumPy and scipy arrays as inputs of PyTorch functions, of modules, and of programs in text form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import sparse

import fuseflow as ff

RANDOM = np.random.default_rng(0)
A = sparse.random_array((6, 8), density=0.4, rng=RANDOM)
X, W = RANDOM.random((8, 3)), RANDOM.random((3, 2))
TEXT = """
tensor A[6, 8] csr
tensor X[8, 3]
Y[i, j] = sum(k) A[i, k] * X[k, j]
output Y
"""


def layer(a: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (a @ (x @ w)).relu()


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_array])
def test_a_function_takes_arrays_of_scipy_and_numpy(make: Callable[..., object]) -> None:
    result = ff.compile(layer, (make(A), X, W)).run()
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(result.tensors["relu"].to_dense(), np.maximum(A @ X @ W, 0))


def test_a_sparse_array_stays_sparse_and_its_repeated_entries_are_added_up() -> None:
    def product(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return a @ x

    twice = sparse.csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 8))
    compiled = ff.compile(product, {"a": twice, "x": X})
    assert compiled.inputs()["a"].to_dense().tolist() == twice.toarray().tolist()
    assert str(compiled.program.declared["a"].format) == "(dense, compressed)"
    assert compiled.inputs()["a"].values.tolist() == [2, 1]


def test_arrays_stand_in_lists_and_keyword_arguments() -> None:
    def product(pair: list[torch.Tensor], *, scale: float) -> torch.Tensor:
        return pair[0] @ pair[1] * scale

    (output,) = ff.compile(product, ([A.tocsr(), X],), kwargs={"scale": np.float64(2)}).run().outputs.values()
    np.testing.assert_allclose(output, A @ X * 2)


def test_a_training_step_takes_arrays() -> None:
    torch.manual_seed(0)
    step = ff.training_step(torch.nn.Linear(3, 2), (X.astype("float32"),), np.zeros((8, 2), "float32"), loss="mse")
    batches = [{"input": X.astype("float32") + k, "target": np.ones((8, 2), "float32")} for k in range(2)]
    run = step.run(steps=2, batches=batches)
    assert run.check is not None and run.check.passed


@pytest.mark.parametrize("inputs", [(A, X), {"A": A, "X": X}, [A.tocsc(), torch.tensor(X, dtype=torch.float32)]])
def test_a_program_in_text_form_takes_arrays_in_order_or_by_name(inputs: object) -> None:
    output = ff.compile(TEXT, inputs).run().outputs["Y"]  # type: ignore[arg-type]
    np.testing.assert_allclose(output, (A @ X).astype("float32"), rtol=1e-6)


def test_a_program_takes_sparse_tensors_of_pytorch() -> None:
    inputs = {"A": torch.tensor(A.toarray(), dtype=torch.float32).to_sparse_csr(), "X": X}
    np.testing.assert_allclose(ff.compile(TEXT, inputs).run().outputs["Y"], (A @ X).astype("float32"), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ff.compile(TEXT, (A,)), "the program has 2 inputs, `A`, `X`; given are 1"),
        (lambda: ff.compile(TEXT, A), "the inputs of `program` are a coo_array"),
        (lambda: ff.compile(TEXT, (A, X.T)), r"tensor `X`: shape \[3, 8\], declared \[8, 3\]"),
        (lambda: ff.compile(TEXT, {"A": A, "Xs": X}), "no input `Xs`\n  hint: did you mean `X`?"),
        (lambda: ff.compile(TEXT, (A, X), tensors={"A": A}), "given twice"),
        (lambda: ff.compile(layer, A), "the inputs of `layer` are a coo_array"),
        (lambda: ff.compile(layer, (A, X.T, W)), r"the arguments are `a` \[6, 8\] float64, `x` \[3, 8\] float64, `w` \[3, 2\]"),
        (lambda: ff.compile(torch.nn.Linear(3, 2), (X,)), r'give all arguments one type: .*`x.astype\("float32"\)`'),
        (lambda: ff.compile(layer, (A, X.astype(object), W)), "elements of type `object`"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ff.FuseFlowError, match=message):
        call()


def test_an_unknown_argument_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match=r"compile\(\) got an unexpected keyword argument 'shedule': did you mean `schedule`"):
        ff.compile(layer, (A, X, W), shedule=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"autoschedule\(\) .* 'machin': did you mean `machine`"):
        ff.autoschedule(layer, (A, X, W), machin="rda")  # type: ignore[call-overload]
