"""A small graph of a sum of two sparse matrices: two scans, a union, an addition and three writers."""

from __future__ import annotations

from fuseflow.samml.text import parse

TEXT = """
tensor A[4, 6] csr f32
tensor B[4, 6] csr f32
tensor Y[4, 6] csr f32
output Y
root = root()
A_i = scan(root) A.0
A_j = scan(A_i.ref) A.1
A_v = load(A_j.ref) A
B_j = scan(A_i.ref) B.1
B_v = load(B_j.ref) B
j = join(A_j.crd, A_v; B_j.crd, B_v) union
s = alu(j.out0, j.out1) add N->0,N->0
Y_i = write(A_i.crd) Y.0
Y_j = write(j.crd) Y.1
Y_v = write(s) Y.vals
"""
GRAPH = parse(TEXT)
