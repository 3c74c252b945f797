"""Linalg modules of several functions: each call of the main one is a fused region of its own."""

import numpy as np
import pytest

from fuseflow.einsum.interpret import evaluate
from fuseflow.errors import FrontendError
from fuseflow.frontend import read_mlir
from fuseflow.schedule import Schedule
from fuseflow.schedule.regions import form_regions

T = "tensor<4x4xf32>"


def product(result: str, left: str, right: str) -> str:
    return f"  %{result} = linalg.matmul ins(%{left}, %{right} : {T}, {T}) outs(%f : {T}) -> {T}\n"


def function(name: str, body: str, result: str) -> str:
    start = (
        f"  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {T}\n  %f = linalg.fill ins(%z : f32) outs(%e : {T}) -> {T}\n"
    )
    return f"func.func {name}(%a: {T}, %x: {T}) -> {T} {{\n{start}{body}  return %{result} : {T}\n}}\n"


def call(result: str, name: str, left: str, right: str) -> str:
    return f"  %{result} = call @{name}({left and '%' + left}, %{right}) : ({T}, {T}) -> {T}\n"


TWICE = function("private @twice", product("0", "a", "x") + product("1", "a", "0"), "1")
ONCE = function("private @once", product("0", "a", "x"), "0")


def regions(text: str, schedule: Schedule | None = None) -> dict[str, int]:
    return {r.name: len(r.einsums) for r in form_regions(read_mlir(text, "m.mlir"), schedule or Schedule.fuse("layerwise"))}


def power(text: str) -> int:
    """Return n if the module computes `a^n x`."""
    program = read_mlir(text, "m.mlir")
    a, x = (np.random.default_rng(seed).standard_normal((4, 4)) for seed in (1, 2))
    values = evaluate(program, {t.name: value for t, value in zip(program.inputs, (a, x), strict=True)})
    return next(n for n in range(9) if np.allclose(np.linalg.matrix_power(a, n) @ x, values[program.outputs[0]]))


@pytest.mark.parametrize(
    ("text", "expected", "exponent"),
    [
        (TWICE + function("@main", call("2", "twice", "a", "x") + call("3", "twice", "a", "2"), "3"), {"twice": 2, "twice-2": 2}, 4),
        (
            TWICE + ONCE + function("@net", call("2", "once", "a", "x") + call("3", "twice", "a", "2"), "3"),
            {"once": 1, "twice": 2},
            3,
        ),
        (
            TWICE + function("@main", product("2", "a", "x") + product("3", "a", "2") + call("4", "twice", "a", "3"), "4"),
            {"matmul": 1, "matmul_2": 1, "twice": 2},
            4,
        ),
        (  # a function that a region calls belongs to the region
            TWICE
            + function("private @outer", call("2", "twice", "a", "x") + product("3", "a", "2"), "3")
            + function("@main", call("2", "outer", "a", "x") + call("3", "twice", "a", "2"), "3"),
            {"outer": 3, "twice": 2},
            5,
        ),
        (  # two functions that would be one name of a region, and an operation that has the name of a function
            TWICE.replace("@twice", "@f$g") + ONCE.replace("@once", "@f_g") + ONCE.replace("@once", "@matmul_4")
            + function(
                "@main",
                call("2", "f$g", "a", "x") + call("3", "f_g", "a", "2") + product("4", "a", "3") + call("5", "matmul_4", "a", "4"),
                "5",
            ),
            {"f_g": 2, "f_g-2": 1, "matmul_4-2": 1, "matmul_4": 1},
            5,
        ),
    ],
)  # fmt: skip
def test_a_call_is_a_region(text: str, expected: dict[str, int], exponent: int) -> None:
    assert regions(text) == expected
    assert power(text) == exponent


def test_the_command_line_wins() -> None:
    text = TWICE + function("@main", call("2", "twice", "a", "x") + call("3", "twice", "a", "2"), "3")
    assert regions(text, Schedule.fuse("full")) == {"full": 4}
    assert len(regions(text, Schedule.fuse("none"))) == 4
    assert sorted(regions(text, Schedule.fuse("twice")).values()) == [1, 1, 2]


def test_one_function_has_no_regions() -> None:
    program = read_mlir(ONCE.replace("private ", ""), "m.mlir")
    assert [(e.name, e.location.region) for e in program.einsums] == [("matmul", "")]


def doubling(levels: int, calls: int) -> str:
    """Return a module in which each function calls the next one so many times."""
    names = [f"f{n}" for n in range(levels)]
    text = function(f"private @{names[-1]}", product("0", "a", "x"), "0")
    for name, inner in zip(["main", *names], names, strict=False):
        body = "".join(call(str(n + 2), inner, "a", "x" if n == 0 else str(n + 1)) for n in range(calls))
        text += function("@main" if name == "main" else f"private @{name}", body, str(calls + 1))
    return text


@pytest.mark.parametrize(
    ("levels", "calls", "message"),
    [
        (16, 2, "the functions that are called have more than 20,000 operations"),
        (9, 4, "the functions that are called have more than 20,000 operations"),
        (3, 40, "the functions that are called have more than 20,000 operations"),
        (400, 1, "more than 50 calls stand inside of each other"),
    ],
)
def test_what_functions_hold_is_bounded(levels: int, calls: int, message: str) -> None:
    with pytest.raises(FrontendError, match=message) as caught:
        read_mlir(doubling(levels, calls), "m.mlir")
    assert caught.value.span is not None and caught.value.span.file == "m.mlir"


def test_as_many_calls_as_are_bounded() -> None:
    assert len(read_mlir(doubling(7, 2), "m.mlir").einsums) == 128
    assert len(read_mlir(doubling(49, 1), "m.mlir").einsums) == 1


MAIN = function("@main", call("2", "once", "a", "x"), "2")


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (function("private @once", call("2", "once", "a", "x"), "2") + MAIN, "the function once calls itself", 5),
        (
            function("private @once", call("2", "other", "a", "x"), "2")
            + function("private @other", call("2", "once", "a", "x"), "2")
            + MAIN,
            "the function once calls itself",
            12,
        ),
        (ONCE + TWICE + MAIN, "nobody calls the function twice", 8),
        (ONCE + TWICE, "the module has 2 functions, and none of them is `main`", 1),
        (ONCE.replace("private ", "") + TWICE.replace("private ", ""), "none of them is `main`", 1),
        (ONCE + function("@main", call("2", "once", "a", "x") + product("3", "a", "x"), "3"), "nobody reads result 1 of the call", 12),
        (ONCE + MAIN.replace(f"({T}, {T})", f"({T}, tensor<4x3xf32>)"), "not a valid MLIR module", 12),
        (ONCE + MAIN.replace("@once", "@twice"), "not a valid MLIR module", 12),
        (f"func.func private @once({T}, {T}) -> {T}\n" + MAIN, "the function once has no body", 1),
    ],
)  # fmt: skip
def test_errors_have_their_line(text: str, message: str, line: int) -> None:
    with pytest.raises(FrontendError) as caught:
        read_mlir(text, "m.mlir")
    assert message in caught.value.message
    assert caught.value.span is not None and (caught.value.span.file, caught.value.span.line) == ("m.mlir", line)
