"""Small programs that several tests use, as text, and how to fuse and lower one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse
from fuseflow.fusion import FusedRegion, fuse
from fuseflow.fusion.order_candidates import enumerate_orders
from fuseflow.samml.nodes import Graph
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.transform import mark_fiber_fifos

TEXTS = {
    "spmm": """
        tensor A[4, 4] csr
        tensor X[4, 5] csr
        Y[i, j] = sum(k) A[i, k] * X[k, j]
        output Y
    """,
    "axw": """
        tensor A[4, 4] csf
        tensor X[4, 3] csf
        tensor W[3, 5] csf
        T[i, f] = sum(k) A[i, k] * X[k, f]
        Y[i, h] = sum(f) T[i, f] * W[f, h]
        output Y
    """,
    "layer": """
        tensor A[4, 4] csr
        tensor X[4, 3] csr
        tensor W[3, 5] dense
        tensor b[5] dense
        T[i, j] = sum(k) X[i, k] * W[k, j]
        U[i, j] = sum(k) A[i, k] * T[k, j]
        Y[i, j] = relu(U[i, j] + b[j])
        output Y
    """,
    "masked_softmax": """
        tensor D[4, 5] dense
        tensor M[4, 5] csf
        S[i, j] = where(M[i, j] == 0, -inf, D[i, j])
        m[i] = max(j) S[i, j]
        E[i, j] = exp(S[i, j] - m[i])
        Y[i, j] = E[i, j] / (sum(k) E[i, k])
        output Y
    """,
    "sddmm": """
        tensor M[4, 5] csf
        tensor Q[4, 3] dense
        tensor K[5, 3] dense
        D[i, j] = sum(k) Q[i, k] * K[j, k]
        Y[i, j] = M[i, j] * D[i, j]
        output Y
    """,
    "transpose": """
        tensor A[4, 4] csr
        Y[i, j] = A[i, j] + A[j, i]
        output Y
    """,
    "row_max": """
        tensor A[3, 4] csr
        m[i] = max(j) A[i, j]
        output m
    """,
    "rows": """
        tensor A[3, 4] csf
        tensor B[3, 4] csf
        tensor Y[3, 4] csr
        Y[i, j] = A[i, j] * B[i, j]
        output Y
    """,
    "enclosed": """
        tensor A[3, 3] csf
        tensor X[3, 3] csf
        tensor B[3, 3, 3] csf
        T[i, j] = sum(k) A[k, i] * X[k, j]
        Y[i, j] = sum(l) T[i, j] * B[i, l, j]
        output Y
    """,
    "hoist": """
        tensor A[3, 4] csr
        tensor m[3] dense
        Y[i, j] = A[i, j] * exp(m[i])
        output Y
    """,
}
ORDERED = [
    ("spmm", "i,k,j"),
    ("axw", "i,k,f,h"),
    ("layer", "i,k,l,j"),
    ("layer", "i,j,k,l"),
    ("masked_softmax", "i,j"),
    ("sddmm", "i,j,k"),
]
"""Programs, each with an order of its loops."""
CHAIN = """
tensor X[9, 20] csr
tensor weight[20, 40]
tensor V[40, 8]
tensor U[3, 3]
T[i, j] = sum(k) X[i, k] * weight[k, j]
Y[i, l] = sum(j) relu(T[i, j]) * V[j, l]
output Y
"""
"""Two products, of which the first reads rows of a weight that sparse rows choose."""
ATTENTION = """
tensor X[5, 6]
tensor W[6, 6]
tensor M[5, 5] csr
tensor V[6, 4]
P[i, e] = sum(k) X[i, k] * W[k, e]
Q[i, h, d] = P[i, h*3 + d]
S[h, i, j] = M[i, j] * (sum(d) Q[i, h, d] * Q[j, h, d])
O[i, h, d] = sum(j) S[h, i, j] * Q[j, h, d]
C[i, h*3 + d] = O[i, h, d]
Y[i, k] = sum(j) C[i, j] * V[j, k]
output Y
"""
"""Two heads of attention under a mask, which a reshape takes apart and puts together."""


def program(name: str) -> Program:
    return infer(parse(TEXTS[name]))


def fused(name: str, order: str = "", **options: Any) -> FusedRegion:
    """All Einsums of a program as one region, in the given order or the one nearest to the program."""
    p = program(name)
    region = fuse(p, name, [e.name for e in p.einsums], p.outputs, {t.name: t for t in p.inputs}, **options)
    return replace(region, order=tuple(order.split(",")) if order else next(enumerate_orders(region.constraints, region.indices)))


def table(name: str, order: str = "") -> FusionTable:
    return build_table(fused(name, order))


def graph(name: str, order: str = "") -> Graph:
    return mark_fiber_fifos(emit(table(name, order)))
