"""Attributes and operations of a Linalg module that a user wrote by hand: each is read, or refused with its line."""

import pytest

from fuseflow.errors import FrontendError
from fuseflow.frontend import read_mlir

PLAIN = """\
module {
  func.func @main(%A: tensor<4xf32> ATTRIBUTES, %B: tensor<4xf32>) -> tensor<4xf32> FUNCTION {
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.add ins(%A, %B : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
SCALAR = """\
func.func @main(%A: tensor<4xf32>) -> tensor<4xf32> {
  %0 = OPERATION : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def plain(argument: str = "", function: str = "", module: str = "") -> str:
    text = PLAIN.replace("ATTRIBUTES", argument).replace("FUNCTION", function)
    return text.replace("module {", f"module {module} {{")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (plain("{samml.name = 3 : i64}"), 2, "attribute `samml.name` is 3 : i64"),
        (plain("{samml.format = 3 : i64}"), 2, "attribute `samml.format` is 3 : i64"),
        (plain('{samml.dtype = ["f32"]}'), 2, "attribute `samml.dtype` is"),
        (plain("{samml.fill = 2.0 : f64}"), 2, "`samml.fill` is read in a module with `samml.program` alone"),
        (plain(function='attributes {samml.order = ["i"]}'), 2, "`samml.order` is read in a module with `samml.program` alone"),
        (plain('{samml.fill = "x"}', module='attributes {samml.program = "p"}'), 2, "attribute `samml.fill` is"),
        (plain("{samml.name = 3 : i64}", module='attributes {samml.program = "p"}'), 2, "attribute `samml.name` is 3 : i64"),
        (SCALAR.replace("OPERATION", "math.exp %A"), 2, "`math.exp` is of scalars, and these are tensors"),
        (SCALAR.replace("OPERATION", "arith.addf %A, %A"), 2, "`arith.addf` is of scalars, and these are tensors"),
    ],
)
def test_what_is_not_read_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(FrontendError) as error:
        read_mlir(text, "m.mlir")
    assert said in error.value.message
    assert error.value.hint
    assert error.value.span is not None and error.value.span.line == line


def test_the_same_module_without_them_is_read() -> None:
    assert [e.name for e in read_mlir(plain('{samml.name = "A"}'), "m.mlir").einsums] == ["add"]
