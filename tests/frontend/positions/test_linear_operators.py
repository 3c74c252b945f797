"""Triangular systems give what PyTorch gives, and their products visit no element that is known to be 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sources import compiled_at
from torch import Tensor

GENERATOR = torch.Generator().manual_seed(3)


def system(*shape: int) -> Tensor:
    """Return square matrices whose triangles are far from singular."""
    return torch.randn(*shape, shape[-1], generator=GENERATOR) / shape[-1] + 2 * torch.eye(shape[-1])


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR)


CASES = {
    "lower": (system(7), numbers(7, 3), {"upper": False}),
    "upper": (system(8), numbers(8, 2), {"upper": True}),
    "from the right": (system(5), numbers(3, 5), {"upper": False, "left": False}),
    "upper, from the right": (system(6), numbers(4, 6), {"upper": True, "left": False}),
    "ones on the diagonal": (system(9), numbers(9, 2), {"upper": False, "unitriangular": True}),
    "upper, ones on the diagonal": (system(4), numbers(2, 4), {"upper": True, "left": False, "unitriangular": True}),
    "a batch": (system(2, 5), numbers(2, 5, 3), {"upper": True}),
    "one matrix for a batch": (system(5), numbers(2, 5, 3), {"upper": False}),
    "one side for a batch": (system(2, 5), numbers(5, 3), {"upper": False}),
    "one row": (system(1), numbers(1, 3), {"upper": False}),
    "one row and ones": (system(1), numbers(1, 3), {"upper": False, "unitriangular": True}),
    "f64": (system(6).double(), numbers(6, 2).double(), {"upper": False}),
}


@pytest.mark.parametrize("case", CASES)
def test_systems_give_what_pytorch_gives(case: str) -> None:
    matrix, known, options = CASES[case]

    def model(a: Tensor, b: Tensor) -> Tensor:
        x: Tensor = torch.linalg.solve_triangular(a, b, **options)
        return x

    for compiled in compiled_at(model, (matrix, known), "none", "full"):
        (output,) = compiled.run().outputs.values()
        expected = model(matrix, known).numpy()
        np.testing.assert_allclose(np.asarray(output, np.float64).reshape(expected.shape), expected, rtol=1e-5, atol=1e-6)


def test_a_singular_system_has_no_finite_solution_where_pytorch_has_none() -> None:
    matrix, known = system(6), numbers(6, 2)
    matrix[3, 3] = 0
    expected = torch.linalg.solve_triangular(matrix, known, upper=False)
    (compiled,) = compiled_at(lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), (matrix, known), "none")
    (output,) = compiled.run(check=False).outputs.values()
    np.testing.assert_array_equal(np.isfinite(np.asarray(output)), torch.isfinite(expected).numpy())
    np.testing.assert_allclose(np.asarray(output)[:3], expected[:3].numpy(), rtol=1e-5)


def test_a_system_takes_fewer_operations_than_its_dense_products() -> None:
    """32 rows: the inverse takes about a third of n cubed multiplications, and not two n cubed ones for each of its five levels."""
    matrix, known = system(32), numbers(32, 2)
    (compiled,) = compiled_at(
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True), (matrix, known), "none"
    )
    assert compiled.run().stats["flops"] < 32**3
