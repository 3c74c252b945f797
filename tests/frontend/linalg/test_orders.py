"""Loop orders that a Linalg module has: the order of the dimensions in the indexing maps of a generic operation."""

from itertools import permutations

import ordered_linalg as linalg
import pytest

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model, read_mlir


def orders(text: str) -> list[str]:
    return ["".join(einsum.order) for einsum in read_mlir(text, "m.mlir").einsums]


@pytest.mark.parametrize("order", [*map("".join, permutations("ikj"))])
def test_the_order_of_a_generic(order: str) -> None:
    text = linalg.two_products(order)
    assert orders(text) == [order, order]
    assert [e.location.span.line for e in read_mlir(text, "m.mlir").einsums if e.location.span] == [6, 12]


def test_an_operation_of_a_function_has_its_order_and_its_line_in_each_call() -> None:
    program = read_mlir(linalg.two_calls("kji"), "m.mlir")
    assert [(e.location.region, "".join(e.order), e.location.span and e.location.span.line) for e in program.einsums] == [
        ("fuse1", "kji", 6),
        ("fuse1", "kji", 12),
        ("fuse1-2", "kji", 6),
        ("fuse1-2", "kji", 12),
    ]


def test_named_operations_have_none() -> None:
    T = linalg.SQUARE
    body = f"  %0 = linalg.matmul ins(%a, %b : {T}, {T}) outs(%f : {T}) -> {T}\n"
    assert orders(linalg.function("@main", (("a", T), ("b", T)), body, "0")) == [""]


def test_pytorch_s_own_have_none() -> None:
    torch = pytest.importorskip("torch")
    imported = import_model(lambda x, y: (x @ y).relu(), (torch.ones(3, 4), torch.ones(4, 5)))
    assert [e.order for e in imported.program.einsums] == [()] * len(imported.program.einsums)


ROW, T3 = "tensor<1x8xf32>", "tensor<2x8x3xf32>"


@pytest.mark.parametrize(
    ("maps", "kinds", "types", "body", "expected"),
    [
        ("(j, i) -> (i, j); (j, i) -> (i, j)", "pp", (linalg.SQUARE, linalg.SQUARE), "exp", "ji"),
        ("(j, i) -> (j, i); (j, i) -> (i, j)", "pp", (linalg.SQUARE, linalg.SQUARE), "exp", "ji"),  # reads transposed
        ("(i, j) -> (i, j); (i, j) -> (i, j)", "pp", (ROW, ROW), "exp", "i"),  # a loop of extent 1 is no loop
        ("(a, b, c) -> (c, a, b); (a, b, c) -> (c, a, b)", "ppp", (T3, T3), "exp", "jki"),
        ("(j, i) -> (i, 7 - j); (j, i) -> (i, j)", "pp", (linalg.SQUARE, linalg.SQUARE), "exp", "ji"),
        ("(k, i) -> (i, k); (k, i) -> (i)", "rp", (linalg.SQUARE, "tensor<8xf32>"), "add", "ji"),
        ("(d, c, i) -> (i, d); (d, c, i) -> (i, c)", "rpp", (linalg.SQUARE, linalg.SQUARE), "add", "ji"),  # c is a broadcast
    ],
)
def test_the_loops_that_there_are(maps: str, kinds: str, types: tuple[str, str], body: str, expected: str) -> None:
    first = read_mlir(one_operation(maps, kinds, types, body), "m.mlir").einsums[0]
    assert "".join(first.order) == expected


def one_operation(maps: str, kinds: str, types: tuple[str, str], body: str) -> str:
    source, target = types
    names = ", ".join({"p": '"parallel"', "r": '"reduction"'}[kind] for kind in kinds)
    listed = ", ".join(f"affine_map<{map}>" for map in maps.split("; "))
    operation = "%m = arith.addf %p, %o : f32" if body == "add" else "%m = math.exp %p : f32"
    text = (
        f"  %0 = linalg.generic {{indexing_maps = [{listed}], iterator_types = [{names}]}} ins(%x : {source}) outs(%f : {target}) {{\n"
        f"    ^bb0(%p: f32, %o: f32):\n      {operation}\n      linalg.yield %m : f32\n  }} -> {target}\n"
    )
    return linalg.function("@main", (("x", source),), text, "0", target)


@pytest.mark.parametrize(
    ("maps", "kinds", "body", "size"),
    [
        ("(i, j) -> (i, j); (i, j) -> (i, i)", "pr", "add", 8),
        ("(i, j) -> (i, j); (i, j) -> (i, 2)", "pr", "add", 8),
        ("(i, j) -> (i, j); (i, j) -> (i * 2, j * 2)", "pp", "exp", 16),
        ("(i, j) -> (i, j); (i, j) -> (i, i + j)", "pp", "add", 15),
        ("(i, j) -> (i, j); (i, j) -> (7 - i, j)", "pp", "exp", 8),
    ],
)
def test_results_that_are_no_permutation_of_loops_are_refused(maps: str, kinds: str, body: str, size: int) -> None:
    """Some of their elements would never be written."""
    with pytest.raises(FrontendError, match=r"no permutation of loops|not a valid MLIR module") as caught:
        read_mlir(one_operation(maps, kinds, (linalg.SQUARE, linalg.tensor(8 if size == 15 else size, size)), body), "m.mlir")
    assert caught.value.span is not None and (caught.value.span.file, caught.value.span.line) == ("m.mlir", 5)
