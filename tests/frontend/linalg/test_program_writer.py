"""Programs written as Linalg modules and read again. MLIR's own verifier reads every text."""

import re

import numpy as np
import pytest
import torch

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Access, Apply, Const, Einsum, Program, TensorType
from fuseflow.einsum.parse import parse
from fuseflow.errors import FrontendError
from fuseflow.frontend import read_mlir
from fuseflow.frontend.linalg.program_writer import write_program
from fuseflow.ops import OPERATORS
from fuseflow.tensors.dtypes import DTYPES

STATEMENTS = {
    "a product": "y[i] = sum(k) A[i, k] * x[k]",
    "a reduction inside": "y[i] = relu(sum(k) A[i, k] * x[k]) + exp(max(l) A[i, l])",
    "two reductions over one name": "y[i] = (sum(k) A[i, k] * x[k]) / (max(k) A[i, k])",
    "a reduction of a reduction": "y[i] = max(k) A[i, k] * (sum(l) A[k, l])",
    "a reduction in another order than its loops": "y[i] = sum(l, k) A[i, k] * B[k, l]",
    "a diagonal": "y[i] = A[i, i]",
    "what would be simplified": "y[i] = pow(max(x[i] + 0, 0) * 1, 0.5)",
    "a number that is no float of 32 bits": "y[i] = x[i] * 0.10000000000000001 + 0.1000000000000001",
    "infinities": "y[i] = where(x[i] == 0, -inf, x[i])",
    "a copy": "y[i] = copy(x[i])",
    "an access alone": "y[i] = x[i]",
    "an offset": "y[i] = x[i - 1] + x[i + 2]",
    "an offset that makes an index plain": "y[i] = x[i + 0] * 2",
    "one row": "y[i] = A[2, i]",
    "a reversed index": "y[i] = x[3 - i]",
}
HEAD = "tensor A[4, 4] csr\ntensor B[4, 3] (compressed, dense) order (1, 0)\ntensor x[4]\ntensor y[4]\n"


def reread(program: Program) -> Program:
    """The program that its own text reads as. The text of that is the same, to the byte."""
    text = write_program(program)
    program = read_mlir(text, "m.mlir")
    assert write_program(program) == text
    return program


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_a_program_reads_as_it_was(statement: str) -> None:
    program = parse(f"{HEAD}{statement}\noutput y")
    again = reread(program)
    assert again.einsums == program.einsums
    assert infer(again).declared == infer(program).declared


def test_every_operator_has_a_form() -> None:
    """`nearest` and `nearest_finite` round to a type; the others apply to any numbers."""
    rows = [row for row in OPERATORS.values() if not row.name.startswith("nearest")]
    bodies = [f"T{n}[i] = {row.name}({', '.join(('x[i]', 'y[i]', 'z[i]')[: row.arity])})" for n, row in enumerate(rows)]
    outputs = "".join(f"\noutput T{n}" for n in range(len(rows)))
    program = parse("tensor x[3]\ntensor y[3]\ntensor z[3]\n" + "\n".join(bodies) + outputs)
    assert reread(program).einsums == program.einsums


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "e4m3", "e5m2", "e2m1", "e8m0"])
def test_a_rounding_is_a_conversion(dtype: str) -> None:
    row = DTYPES[dtype]
    rounded = Apply(row.rounding, (Access("x", ("i",)), *map(Const, row.parameters)))
    program = Program((TensorType("x", (3,)),), (Einsum("y", ("i",), rounded),), ("y",))
    assert "arith.truncf" in write_program(program)
    assert reread(program).einsums == program.einsums


@pytest.mark.parametrize(
    "declaration",
    [
        "tensor x[1, 4] (dense, compressed) f64 fill -inf",
        "tensor x[1, 4] dense u8",
        "tensor x[1, 4] dense i4 fill 3",
        "tensor x[1, 4] (bitmap, dense) f16",
        "tensor x[1, 4] csr i4",
        "tensor x[1, 4] csr e4m3",
        "tensor x[1, 4] dense e5m2 fill 3",
        "tensor x[1, 4] csr e2m1",
        "tensor x[1, 4] csr e8m0",
        "tensor x[1, 4] (compressed, nm(2:4))",
        "tensor x[1, 4] csr all",
        "tensor x[0, 4] coo",
    ],
)
def test_types_of_tensors_stay(declaration: str) -> None:
    program = parse(f"{declaration}\nT[j, i] = x[i, j]\ny[j] = sum(i) T[j, i]\noutput T\noutput y")
    again = reread(program)
    assert (again.einsums, infer(again).declared) == (program.einsums, infer(program).declared)


def test_dimensions_that_are_put_together_and_taken_apart() -> None:
    program = parse("tensor A[2, 3, 4]\nT[i, j*4 + k] = A[i, j, k]\nU[i, j, k] = T[i, j*4 + k]\noutput T\noutput U")
    assert reread(program).einsums == program.einsums


def test_names_that_mlir_has_no_letters_for() -> None:
    program = parse("tensor layer1.Größe[4]\ntensor _1[4]\nmain[mod] = layer1.Größe[mod] * _1[mod]\noutput main")
    assert reread(program).einsums == program.einsums


def test_the_text_computes_what_pytorch_computes_of_it() -> None:
    """The scalar operations of a text, evaluated as PyTorch names them, give what the operators of the table give."""
    program = parse("tensor x[5]\ny[i] = sigmoid(x[i]) + where(x[i], relu(x[i]), 2) + threshold(x[i], 0.5)\noutput y")
    names = {"addf": torch.add, "subf": torch.sub, "mulf": torch.mul, "divf": torch.div, "negf": torch.neg, "absf": torch.abs}
    names |= {"exp": torch.exp, "maximumf": torch.maximum, "select": torch.where, "une": torch.ne, "olt": torch.lt}
    x = torch.tensor([-2.0, -0.25, 0.0, 0.25, 3.0])
    values: dict[str, torch.Tensor] = {}
    for line in write_program(program).splitlines():
        if block := re.match(r"\s*\^bb0\((%\w+)", line):
            values = {block[1]: x}
        if constant := re.match(r"\s*(%\w+) = arith.constant ([-\d.e]+) : f32", line):
            values[constant[1]] = torch.full_like(x, float(constant[2]))
        if operation := re.match(r"\s*(%\w+) = (?:arith|math)\.(?:cmpf )?(\w+),? ((?:%\w+(?:, )?)+)", line):
            values[operation[1]] = names[operation[2]](*(values[v] for v in operation[3].split(", ")))
        if end := re.match(r"\s*linalg.yield (%\w+)", line):
            result = values[end[1]]
    np.testing.assert_allclose(result.numpy(), evaluate(program, {"x": x.double().numpy()})["y"], rtol=1e-6)


def test_what_has_no_form_is_refused_with_its_line() -> None:
    program = parse("tensor A[4, 4] csr\nT[i, j] = relu(A[i, j])\ny[i, j] = keep(2 over j) T[i, j]\noutput y", "p.ein")
    with pytest.raises(FrontendError, match="`y` has no form in Linalg: Linalg keeps no part of a result") as error:
        write_program(program)
    assert error.value.span is not None and (error.value.span.file, error.value.span.line) == ("p.ein", 3)
