"""Decoders of a transformer as a text program, small enough for tests: projections, masked attention, a feed-forward network."""

from __future__ import annotations

import numpy as np

ROWS, WIDTH, HEADS, INNER = 6, 4, 2, 5
HEAD = WIDTH // HEADS

_NORM = """
{y}.mean[i] = (sum(k) {x}[i, k]) / {width}                              @{path}
{y}.c[i, k] = {x}[i, k] - {y}.mean[i]                                   @{path}
{y}.var[i]  = (sum(k) {y}.c[i, k] * {y}.c[i, k]) / {width}              @{path}
{y}[i, k]   = {y}.c[i, k] * rsqrt({y}.var[i] + 1e-5)                    @{path}
"""

_PROJECTIONS = """
q{n}[i, e] = sum(k) y{n}[i, k] * Wq{n}[k, e]                            @{path}
k{n}[i, e] = sum(k) y{n}[i, k] * Wk{n}[k, e]                            @{path}
v{n}[i, e] = sum(k) y{n}[i, k] * Wv{n}[k, e]                            @{path}
Q{n}[h, i, d] = q{n}[i, h*{head} + d]                                   @{path}
K{n}[h, d, j] = k{n}[j, h*{head} + d]                                   @{path}
V{n}[h, j, d] = v{n}[j, h*{head} + d]                                   @{path}
"""

ATTENTION = """
S{n}[h, i, j] = sum(d) Q{n}[h, i, d] * K{n}[h, d, j]                    @{path}
P{n}[h, i, j] = where(M[i, j] == 0, -inf, S{n}[h, i, j] / 2)            @{path}
m{n}[h, i]    = max(j) P{n}[h, i, j]                                    @{path}
E{n}[h, i, j] = exp(P{n}[h, i, j] - m{n}[h, i])                         @{path}
A{n}[h, i, j] = E{n}[h, i, j] / (sum(l) E{n}[h, i, l])                  @{path}
O{n}[h, i, d] = sum(j) A{n}[h, i, j] * V{n}[h, j, d]                    @{path}
"""

_REST = """
a{n}[i, h*{head} + d] = O{n}[h, i, d]                                   @{path}
r{n}[i, e] = {x}[i, e] + (sum(k) a{n}[i, k] * Wo{n}[k, e])              @{path}
{norm}
f{n}[i, g] = relu(sum(k) z{n}[i, k] * W1{n}[k, g])                      @{path}
x{n}[i, e] = r{n}[i, e] + (sum(g) f{n}[i, g] * W2{n}[g, e])             @{path}
"""


def decoders(count: int) -> str:
    """A program of `count` decoders: layers `h.0`, `h.1`, ... on the sequence `x`."""
    lines = [f"tensor x[{ROWS}, {WIDTH}]", f"tensor M[{ROWS}, {ROWS}] csr"]
    for n in range(count):
        lines += [f"tensor W{which}{n}[{WIDTH}, {WIDTH}]" for which in "qkvo"]
        lines += [f"tensor W1{n}[{WIDTH}, {INNER}]", f"tensor W2{n}[{INNER}, {WIDTH}]"]
    for n in range(count):
        x, names = "x" if n == 0 else f"x{n - 1}", {"n": n, "path": f"h.{n}", "head": HEAD, "width": WIDTH}
        lines.append(_NORM.format(x=x, y=f"y{n}", **names))
        lines.append((_PROJECTIONS + ATTENTION).format(**names))
        lines.append(_REST.format(x=x, norm=_NORM.format(x=f"r{n}", y=f"z{n}", **names), **names))
    return "\n".join([*lines, f"output x{count - 1}"])


def attention() -> str:
    """Attention alone, on queries, keys and values of every head."""
    shapes = {"Q": (HEADS, ROWS, HEAD), "K": (HEADS, HEAD, ROWS), "V": (HEADS, ROWS, HEAD)}
    lines = [f"tensor {name}0[{', '.join(map(str, shape))}]" for name, shape in shapes.items()]
    return "\n".join([*lines, f"tensor M[{ROWS}, {ROWS}] csr", ATTENTION.format(n=0, path="attn"), "output O0"])


def mask() -> np.ndarray:
    """A mask that keeps the diagonal, and some more of every row but one."""
    kept = np.random.default_rng(3).random((ROWS, ROWS)) < 0.3
    kept[2] = False
    return (kept | np.eye(ROWS, dtype=bool)).astype(np.float32)
