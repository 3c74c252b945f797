"""Random matrices with random parts, and the programs that multiply with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.plan.decompose import Decomposed
from fuseflow.plan.partition import Form, Part, PlannedPart
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import pack_declared

SIZES = (1, 2, 3, 4, 5, 8)
STATEMENTS = (
    "Y[i, j] = sum(k) A[i, k] * B[k, j]",
    "Y[i, j] = sum(k) A[i, k] * B[j, k]",
    "Y[j, i] = relu((sum(k) A[i, k] * B[k, j]) - bias[j])",
    "T[i, k] = A[i, k] + A[i, k]\nY[i, j] = sum(k) T[i, k] * B[k, j] + bias[j]",
    "H[i, j] = sum(k) A[i, k] * B[k, j]\nY[i, j] = H[i, j] - (sum(k) A[i, k] * C[k, j])",
)


@dataclass(frozen=True)
class Case:
    """A program with the arrays of its inputs, and parts for its operand `B`."""

    program: Program
    arrays: dict[str, np.ndarray]
    planned: tuple[PlannedPart, ...]

    @property
    def given(self) -> Decomposed:
        return Decomposed(self.program, packed(self.program, self.arrays))

    @property
    def innermost(self) -> int:
        format = self.program.declared["B"].format
        assert format is not None
        return format.order[-1]


def packed(program: Program, arrays: dict[str, np.ndarray]) -> dict[str, Tensor]:
    return {tensor.name: pack_declared(arrays[tensor.name], tensor) for tensor in program.inputs}


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    statement, format = str(rng.choice(STATEMENTS)), str(rng.choice(["dense", "csr", "csc", "dcsr", "coo"]))
    i, j, k = map(int, rng.integers(1, 20, size=3))
    shape = (j, k) if "B[j, k]" in statement else (k, j)
    computed = "T[" in statement
    lines = [f"tensor A[{i}, {k}] {rng.choice(['dense', 'csr', 'dense' if computed else f'dense block {rng.integers(1, 5)}x1'])}"]
    lines += [f"tensor B[{shape[0]}, {shape[1]}] {format}"]
    lines += [f"tensor bias[{j}]"] if "bias" in statement else []
    lines += [f"tensor C[{k}, {j}] csr"] if "C[" in statement else []
    program = parse("\n".join([*lines, statement, "output Y"]))
    arrays = {tensor.name: random_matrix(rng, tensor.shape) for tensor in program.inputs}
    return Case(program, arrays, random_parts(rng, arrays["B"], same_size=computed))


def random_matrix(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """A matrix with scattered entries and some blocks, of which some are small integers."""
    mask = rng.random(shape) < rng.choice([0, 0.1, 0.5, 1])
    if len(shape) == 2 and rng.random() < 0.7:
        row, column = (int(rng.integers(0, size)) for size in shape)
        mask[row : row + 8, column : column + 8] = True
    values = np.where(rng.random(shape) < 0.5, rng.integers(-9, 10, shape), rng.standard_normal(shape))
    return np.where(mask, values, 0).astype(np.float32)


def random_parts(rng: np.random.Generator, values: np.ndarray, same_size: bool) -> tuple[PlannedPart, ...]:
    """Parts of which the last one holds everything. With `same_size`, all are in blocks of one size."""
    forms = list[Form]()
    if not same_size and rng.random() < 0.3:
        n = int(rng.integers(1, 4))
        forms.append(Form.parse(f"nm({n}:{n + rng.integers(0, 4)})"))
    dtypes: tuple[str, ...] = ("", "", "i4", "i8", "f16")
    block = tuple(map(int, rng.choice(SIZES, 2)))
    for _ in range(rng.integers(0, 3)):
        size: Any = block if same_size else tuple(map(int, rng.choice(SIZES, 2)))
        forms.append(Form(size, dtype=str(rng.choice(dtypes))))
    last: Any = block if same_size else (1, 1) if rng.random() < 0.7 else block
    forms.append(Form(last))
    return tuple(PlannedPart(form, float(rng.integers(1, 40)) / 4) for form in dict.fromkeys(forms))


def scattered_parts(seed: int, case: Case) -> tuple[Part, ...]:
    """The entries of `B` in any of its parts that holds everything, as no cover would have them."""
    rng, values = np.random.default_rng(seed), case.arrays["B"]
    forms = list(dict.fromkeys(Form(part.form.block) for part in case.planned if part.form.nm is None))
    owner = rng.integers(0, len(forms), values.shape)
    return tuple(Part(form, (owner == number) & (values != 0)) for number, form in enumerate(forms))


def arrays_of(tensors: dict[str, Tensor] | Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(tensor.to_dense()) for name, tensor in tensors.items()}
