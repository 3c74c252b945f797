"""What is refused of modules that a program was written to: each text is one that was changed by hand."""

import pytest

from fuseflow.einsum.parse import parse
from fuseflow.errors import FrontendError, FuseFlowError
from fuseflow.frontend import read_mlir
from fuseflow.frontend.linalg.program_writer import write_program

PROGRAM = parse("tensor A[4, 4] csr\ntensor x[4]\ny[i] = relu(sum(k) A[i, k] * x[k])\nz[i] = y[i] * 2\noutput z")
TEXT = write_program(PROGRAM)

EDITS = {
    "another operator under a name": ("arith.maximumf", "arith.minimumf", "these operations are not how `relu` is composed"),
    "an operation of another kind": ("arith.mulf", "math.atan2", "has no place in a named Einsum"),
    "loops without names": ('samml.indices = ["i", "k"]', 'samml.indices = ["i"]', "`samml.indices` does not name 2 loops: i"),
    "loops of one name": ('samml.indices = ["i", "k"]', 'samml.indices = ["i", "i"]', "does not name 2 loops: i, i"),
    "a start that is no identity": ("arith.constant 0.0 : f32", "arith.constant 1.0 : f32", "another number than its identity"),
    "a name twice": ('samml.name = "z"', 'samml.name = "y"', "`y` is defined 2 times"),
    "a type that is not computed": ('samml.indices = ["i"]}', 'samml.indices = ["i"], samml.dtype = "u8"}', "is u8[4] here"),
    "an unknown format": ('{samml.name = "A"}', '{samml.name = "A", samml.format = "csx"}', "attribute `samml.format`"),
    "an unknown type": ('{samml.name = "A"}', '{samml.name = "A", samml.dtype = "u7"}', "has elements of type u7"),
    "an order that the maps contradict": (
        'samml.unordered, samml.indices = ["i"]',
        'samml.order = ["k"], samml.indices = ["i"]',
        "says k",
    ),
}


@pytest.mark.parametrize(("old", "new", "message"), EDITS.values(), ids=EDITS)
def test_a_change_that_means_nothing_is_refused(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(FuseFlowError) as error:
        read_mlir(TEXT.replace(old, new), "m.mlir")
    assert message in error.value.message and error.value.span is not None
    assert error.value.span.file == "m.mlir"


def test_a_change_of_the_numbers_is_read() -> None:
    text = TEXT.replace("arith.constant 2.0 : f32", "arith.constant 3.0 : f32")
    assert read_mlir(text, "m.mlir").einsums[1] == parse("tensor y[4]\nz[i] = y[i] * 3\noutput z").einsums[0]


FUNCTION = "  func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{\n    {}\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return %x : tensor<4xf32>", "nobody calls the function g"),
        ("%0 = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>", "a region calls a function"),
    ],
)
def test_functions_that_are_no_regions(body: str, message: str) -> None:
    text = TEXT.rstrip().removesuffix("}") + FUNCTION.format(body)
    if "call" in body:
        text = text.replace("    return %z", "    %w = call @g(%z) : (tensor<4xf32>) -> tensor<4xf32>\n    return %w", 1)
    with pytest.raises(FrontendError, match=message):
        read_mlir(text, "m.mlir")
