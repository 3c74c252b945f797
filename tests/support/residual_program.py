"""A residual block behind a normalization: `R` is used by its maximum, by the layer, and by the sum at the end."""

from __future__ import annotations

RESIDUAL = """
tensor X[4, 6]
tensor W[6, 6]
tensor U[6, 8]
tensor V[8, 6]
R[i, j] = sum(k) X[i, k] * W[k, j]
m[i]    = max(j) R[i, j]
H[i, g] = relu(sum(k) (R[i, k] - m[i]) * U[k, g])
Y[i, j] = R[i, j] + (sum(g) H[i, g] * V[g, j])
output Y
"""
