"""Linalg modules whose generic operations have their loops in an order: products, sums and functions that are regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

CSR = "#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>\n"
KINDS = {"i": "parallel", "j": "parallel", "k": "reduction"}


def tensor(rows: int, columns: int, encoding: str = "") -> str:
    return f"tensor<{rows}x{columns}xf32{encoding and ', ' + encoding}>"


SQUARE = tensor(8, 8)


def generic(result: str, operands: Sequence[tuple[str, str, str]], order: str, body: str, type: str = SQUARE) -> str:
    """Return a generic operation in six lines. `operands` are the name, the type and the indices of each; the result is at `i, j`."""
    loops = ", ".join(order)
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(indices)})>" for *_, indices in (*operands, ("", "", "ij")))
    kinds = ", ".join(f'"{KINDS[v]}"' for v in order)
    names, types = (", ".join(words) for words in list(zip(*[(f"%{name}", t) for name, t, _ in operands], strict=True)))
    arguments = ", ".join(f"%{v}: f32" for v in "pqo"[-1 - len(operands) :])
    return (
        f"  %{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
        f"ins({names} : {types}) outs(%f : {type}) {{\n"
        f"    ^bb0({arguments}):\n{body}  }} -> {type}\n"
    )


def product(result: str, left: str, right: str, order: str, types: tuple[str, str, str] = (SQUARE, SQUARE, SQUARE)) -> str:
    """Return the product of two matrices."""
    body = "      %m = arith.mulf %p, %q : f32\n      %s = arith.addf %o, %m : f32\n      linalg.yield %s : f32\n"
    return generic(result, [(left, types[0], "ik"), (right, types[1], "kj")], order, body, types[2])


def pointwise(result: str, left: str, right: str, order: str, operator: str = "addf") -> str:
    """Return an operator on two matrices, in one line more than its two operations."""
    body = f"      %m = arith.{operator} %p, %q : f32\n      linalg.yield %m : f32\n"
    return generic(result, [(left, SQUARE, "ij"), (right, SQUARE, "ij")], order, body)


def function(name: str, arguments: Sequence[tuple[str, str]], body: str, result: str, type: str = SQUARE) -> str:
    """Return a function with a matrix `%f` of zeros; the body begins in its fifth line."""
    head = ", ".join(f"%{name}: {type}" for name, type in arguments)
    zeros = f"  %e = tensor.empty() : {type}\n  %f = linalg.fill ins(%z : f32) outs(%e : {type}) -> {type}\n"
    return (
        f"func.func {name}({head}) -> {type} {{\n  %z = arith.constant 0.0 : f32\n{zeros}{body}  return %{result} : {type}\n}}\n"
    )


def call(result: str, name: str, arguments: Sequence[tuple[str, str]], type: str = SQUARE) -> str:
    names, types = (", ".join(words) for words in zip(*[(f"%{a}", t) for a, t in arguments], strict=True))
    return f"  %{result} = call @{name}({names}) : ({types}) -> {type}\n"


A, X, W, Y = tensor(8, 8, "#csr"), tensor(8, 4), tensor(4, 4), tensor(8, 4)
AXW = (("A", A), ("X", X), ("W", W))


def two_products(order: str) -> str:
    """Return a module that computes `A X W` in one function, its products at the lines 6 and 12, with their loops in this order."""
    body = product("0", "A", "X", order, (A, X, Y)) + product("1", "0", "W", order, (Y, W, Y))
    return CSR + function("@main", AXW, body, "1", Y)


def two_calls(order: str = "ikj") -> str:
    """Return a module that computes `A (A X W) W` by two calls of one function."""
    body = product("0", "A", "X", order, (A, X, Y)) + product("1", "0", "W", order, (Y, W, Y))
    calls = call("0", "fuse1", AXW, Y) + call("1", "fuse1", (("A", A), ("0", Y), ("W", W)), Y)
    return CSR + function("private @fuse1", AXW, body, "1", Y) + function("@main", AXW, calls, "1", Y)


def operands() -> dict[str, np.ndarray]:
    """Return values of A, X and W, of which A is sparse."""
    rng = np.random.default_rng(0)
    a = (rng.random((8, 8)) < 0.3) * rng.standard_normal((8, 8))
    arrays = (a, rng.standard_normal((8, 4)), rng.standard_normal((4, 4)))
    return {f"arg{n}": array.astype(np.float32) for n, array in enumerate(arrays)}


def runs_in(loops: Sequence[str], names: Mapping[str, str], order: str) -> bool:
    """Return whether loops are in an order of other names."""
    places = [loops.index(names.get(v, v)) for v in order]
    return all(a < b for a, b in pairwise(places))
