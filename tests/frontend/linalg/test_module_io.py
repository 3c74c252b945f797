"""Linalg from a user's file: named operations and generics, encodings, names, and errors at their line. No PyTorch here."""

import numpy as np
import pytest

from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.text import show
from fuseflow.errors import FrontendError
from fuseflow.frontend import read_mlir

CSR = "#CSR = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>\n"


def function(arguments: str, result: str, *body: str) -> str:
    lines = "\n".join(f"  {line}" for line in body)
    return f"{CSR}func.func @f({arguments}) -> {result} {{\n  %zero = arith.constant 0.0 : f32\n{lines}\n}}\n"


SPMM = function(
    '%a: tensor<4x5xf32, #CSR> {samml.name = "A"}, %b: tensor<5x3xf32> loc("B")',
    "tensor<4x3xf32>",
    "%e = tensor.empty() : tensor<4x3xf32>",
    "%i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>",
    "%r = linalg.matmul ins(%a, %b : tensor<4x5xf32, #CSR>, tensor<5x3xf32>) outs(%i : tensor<4x3xf32>) -> tensor<4x3xf32>",
    "return %r : tensor<4x3xf32>",
)


def test_named_operation() -> None:
    assert show(read_mlir(SPMM)) == (
        "program f\n"
        "tensor A[4, 5]  csr\n"
        "tensor B[5, 3]  dense\n"
        "matmul[i, j] = sum(k) A[i, k] * B[k, j]\n"
        "output matmul\n"
    )  # fmt: skip


BSR = "#sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense) }>"


def test_blocks() -> None:
    """They need not divide the tensor; a result in blocks is declared so, as any encoded result is."""
    text = SPMM.replace("(i : dense, j : compressed) }>", "(i floordiv 2 : dense, j : compressed, i mod 2 : dense) }>")
    assert "tensor A[4, 5]  csr block 2x1\n" in show(read_mlir(text))
    copied = function(
        "%a: tensor<5x7xf32, #BSR>",
        "tensor<5x7xf32, #CSC>",
        "%r = sparse_tensor.convert %a : tensor<5x7xf32, #BSR> to tensor<5x7xf32, #CSC>",
        "return %r : tensor<5x7xf32, #CSC>",
    )
    by_column = BSR.replace(
        "(i floordiv 2 : dense, j floordiv 3 : compressed", "(j floordiv 3 : dense, i floordiv 2 : compressed"
    )
    program = read_mlir(f"#BSR = {BSR}\n#CSC = {by_column}\n{copied}")
    assert [(t.format.short(), t.block) for t in program.tensors if t.format] == [("csr", (2, 3)), ("csc", (2, 3))]


def test_blocks_without_their_elements() -> None:
    """MLIR's own parser dies of them."""
    broken = BSR.replace(", j mod 3 : dense", "")
    with pytest.raises(FrontendError, match="there is no level `j mod 3`") as caught:
        read_mlir(SPMM.replace("#sparse_tensor", f"{broken}\n#C = #sparse_tensor", 1), "f.mlir")
    assert str(caught.value.span) == "f.mlir:1"


def test_arguments_without_names_are_numbered() -> None:
    program = read_mlir(SPMM.replace(' {samml.name = "A"}', "").replace(' loc("B")', ""))
    assert [t.name for t in program.inputs] == ["arg0", "arg1"]


def test_locations_are_lines_of_the_file() -> None:
    (einsum,) = read_mlir(SPMM, "spmm.mlir").einsums
    assert str(einsum.location.span).startswith("spmm.mlir:6:")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("%r = linalg.add ins(%x, %y : T, T) outs(%e : T) -> T", "add[i, j] = x[i, j] + y[i, j]"),
        ("%r = linalg.mul ins(%x, %y : T, T) outs(%e : T) -> T", "mul[i, j] = x[i, j] * y[i, j]"),
        ("%r = linalg.exp ins(%x : T) outs(%e : T) -> T", "exp[i, j] = exp(x[i, j])"),
        ("%r = linalg.max ins(%x, %y : T, T) outs(%e : T) -> T", "max[i, j] = max(x[i, j], y[i, j])"),
        ("%r = linalg.transpose ins(%x : T) outs(%e : T) permutation = [1, 0]", "output[i, j] = x[j, i]"),
        ("%r = linalg.matmul ins(%x, %x : T, T) outs(%y : T) -> T", "matmul[i, j] = y[i, j] + sum(k) x[i, k] * x[k, j]"),
    ],
)
def test_named_operations(operation: str, expected: str) -> None:
    arguments = '%x: T {samml.name = "x"}, %y: T {samml.name = "y"}'
    text = function(arguments, "T", "%e = tensor.empty() : T", operation, "return %r : T").replace("T", "tensor<3x3xf32>")
    assert expected in show(read_mlir(text))


def generic(maps: str, iterators: str, body: str, inputs: str = "%x", out: str = "%i", result: str = "tensor<3xf32>") -> str:
    kinds = ", ".join(f'"{kind}"' for kind in iterators.split())
    names = inputs.split(", ")
    block = ", ".join([f"%v{n}: f32" for n in range(len(names))] + ["%acc: f32"])
    types = ", ".join("tensor<3x4xf32>" for _ in names)
    return (
        f"%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({inputs} : {types}) outs({out} : {result}) {{\n"
        f"  ^bb0({block}):\n{body}\n  }} -> {result}"
    )


ROW = "affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>"


def reduction(body: str, start: str = "0.0") -> str:
    return function(
        '%x: tensor<3x4xf32> {samml.name = "x"}',
        "tensor<3xf32>",
        f"%s = arith.constant {start} : f32",
        "%e = tensor.empty() : tensor<3xf32>",
        "%i = linalg.fill ins(%s : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>",
        generic(ROW, "parallel reduction", body),
        "return %r : tensor<3xf32>",
    )


@pytest.mark.parametrize(
    ("operator", "start", "expected"),
    [
        ("arith.addf", "0.0", "sum[i] = sum(j) x[i, j]"),
        ("arith.mulf", "1.0", "prod[i] = prod(j) x[i, j]"),
        ("arith.maximumf", "0xFF800000", "max[i] = max(j) x[i, j]"),
        ("arith.minimumf", "0x7F800000", "min[i] = min(j) x[i, j]"),
        ("arith.addf", "2.0", "sum[i] = 2 + sum(j) x[i, j]"),
        ("arith.maximumf", "0.0", "max[i] = relu(max(j) x[i, j])"),
    ],
)
@pytest.mark.parametrize("operands", ["%v0, %acc", "%acc, %v0"])
def test_reductions_in_either_operand_order(operator: str, start: str, expected: str, operands: str) -> None:
    program = read_mlir(reduction(f"%0 = {operator} {operands} : f32\nlinalg.yield %0 : f32", start))
    assert show(program).splitlines()[-2].replace("  ", " ") == expected
    x = np.arange(12.0).reshape(3, 4) - 5
    fold = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[expected[: expected.index("[")]](x, axis=1)
    want = fold + 2 if start == "2.0" else np.maximum(fold, 0) if "relu" in expected else fold
    assert (evaluate(program, {"x": x})[program.outputs[0]] == want).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%0 = arith.subf %acc, %v0 : f32\nlinalg.yield %0 : f32", "reduction has no Einsum form"),
        (
            "%0 = arith.mulf %acc, %v0 : f32\n%1 = arith.addf %0, %acc : f32\nlinalg.yield %1 : f32",
            "reduction has no Einsum form",
        ),
        ("linalg.yield %v0 : f32", "overwrites its result"),
        ("%0 = math.cbrt %v0 : f32\n%1 = arith.addf %acc, %0 : f32\nlinalg.yield %1 : f32", "`math.cbrt` has no Einsum form"),
    ],
)
def test_bodies_that_are_refused_at_their_line(body: str, message: str) -> None:
    with pytest.raises(FrontendError) as caught:
        read_mlir(reduction(body), "r.mlir")
    assert message in caught.value.message
    assert str(caught.value.span).startswith("r.mlir:7:")


def test_a_window_is_an_affine_index() -> None:
    text = function(
        "%x: tensor<6xf32>, %w: tensor<3xf32>, %i: tensor<4xf32>",
        "tensor<4xf32>",
        "%r = linalg.conv_1d ins(%x, %w : tensor<6xf32>, tensor<3xf32>) outs(%i : tensor<4xf32>) -> tensor<4xf32>",
        "return %r : tensor<4xf32>",
    )
    program = read_mlir(text)
    x, w = np.arange(6.0), np.array([1.0, -2.0, 3.0])
    result = evaluate(program, dict(zip((t.name for t in program.inputs), (x, w, np.ones(4)), strict=True)))[program.outputs[0]]
    np.testing.assert_array_equal(result, np.correlate(x, w) + 1)


def test_declared_intermediate_format_and_convert() -> None:
    text = function(
        '%x: tensor<3x4xf32> {samml.name = "x"}, %y: tensor<3x4xf32, #CSR> {samml.name = "y"}',
        "tensor<3x4xf32, #CSR>",
        "%c = sparse_tensor.convert %x : tensor<3x4xf32> to tensor<3x4xf32, #CSR>",
        "%e = tensor.empty() : tensor<3x4xf32, #CSR>",
        "%r = linalg.mul ins(%c, %y : T, T) outs(%e : T) -> T",
        "return %r : T",
    )
    program = read_mlir(text.replace("T", "tensor<3x4xf32, #CSR>"))
    assert {t.name: t.format and t.format.short() for t in program.tensors} == {
        "x": "dense",
        "y": "csr",
        "copy": "csr",
        "mul": "csr",
    }
    assert [e.name for e in program.einsums] == ["copy", "mul"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("func.func @f(", "not a valid MLIR module", "m.mlir:1:"),
        (
            "func.func @f(%x: tensor<3xf32>) -> tensor<4xf32> {\n  return %x : tensor<3xf32>\n}",
            "not a valid MLIR module",
            "m.mlir:2:",
        ),
        ("module {}", "the module has 0 functions", None),
        ("func.func private @f(tensor<3xf32>) -> tensor<3xf32>", "has no body", None),
        ("func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }", "unknown extent", None),
        ("func.func @f(%x: tensor<3xi24>) -> tensor<3xi24> { return %x : tensor<3xi24> }", "elements of type i24", None),
        ("func.func @f(%x: f32) -> f32 { return %x : f32 }", "`arg0` is a f32", None),
        ("func.func @f(%x: memref<3xf32>) { return }", "`arg0` is a memref<3xf32>", None),
        (
            "func.func @f(%x: tensor<6xf32>) -> tensor<3xf32> {\n"
            "  %c = arith.constant 1.0 : f32\n  %0 = tensor.pad %x low[1] high[-4] {\n  ^bb0(%i: index):\n    tensor.yield %c : f32\n"
            "  } : tensor<6xf32> to tensor<3xf32>\n  return %0 : tensor<3xf32>\n}",
            "padding with another value than 0",
            "m.mlir:3:",
        ),
        (
            "func.func @f() -> tensor<2xf32> {\n  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}",
            "a constant tensor in the code",
            "m.mlir:2:",
        ),
        (
            CSR.replace("j : compressed", "j : structured[2, 4]")
            + "func.func @f(%x: tensor<4x4xf32, #CSR>) -> tensor<4x4xf32, #CSR> {\n"
            "  return %x : tensor<4x4xf32, #CSR>\n}",
            "structured",
            None,
        ),
    ],
)
def test_bad_modules(text: str, message: str, place: str | None) -> None:
    with pytest.raises(FrontendError) as caught:
        read_mlir(text, "m.mlir")
    assert message in str(caught.value)
    assert place is None or str(caught.value.span).startswith(place)
