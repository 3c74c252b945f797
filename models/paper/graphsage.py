"""Two-layer GraphSAGE, as the FuseFlow paper writes it: sums over neighbours, weights of its own for each node itself; the relu of the
first layer applied twice, no softmax."""

import numpy as np
from weights import dense_weights, sparse_weights

PROGRAM = """
program graphsage
tensor A[{nodes}, {nodes}]         csf
tensor X[{nodes}, {features}]      dense
tensor Ws1[{features}, {hidden}]   csf
tensor bs1[{hidden}]               dense
tensor Wn1[{features}, {hidden}]   csf
tensor bn1[{hidden}]               dense
tensor Ws2[{hidden}, {classes}]    csf
tensor bs2[{classes}]              dense
tensor Wn2[{hidden}, {classes}]    csf
tensor bn2[{classes}]              dense

P0[i, h] = sum(f) X[i, f] * Ws1[f, h]    @layer1
P[i, h]  = P0[i, h] + bs1[h]             @layer1
Q0[i, f] = sum(k) A[i, k] * X[k, f]      @layer1
Q1[i, h] = sum(f) Q0[i, f] * Wn1[f, h]   @layer1
Q[i, h]  = Q1[i, h] + bn1[h]             @layer1
H0[i, h] = P[i, h] + Q[i, h]             @layer1
H1[i, h] = relu(H0[i, h])                @layer1
H[i, h]  = relu(H1[i, h])                @layer1

R0[n, c] = sum(h) H[n, h] * Ws2[h, c]    @layer2
R[n, c]  = R0[n, c] + bs2[c]             @layer2
U0[n, h] = sum(j) A[n, j] * H[j, h]      @layer2
U1[n, c] = sum(h) U0[n, h] * Wn2[h, c]   @layer2
U[n, c]  = U1[n, c] + bn2[c]             @layer2
Y0[n, c] = R[n, c] + U[n, c]             @layer2
Y[n, c]  = relu(Y0[n, c])                @layer2
output Y
"""


def build(data, *, small: bool = False, hidden: int = 0, seed: int = 0):
    """The program and its tensors. `hidden` 0: the published 16, or 4 if `small`."""
    nodes, features = data.inputs.shape
    hidden = hidden or (4 if small else 16)
    rng = np.random.default_rng(seed)
    tensors = {"A": data.matrix(default="raw"), "X": data.inputs}
    for layer, rows, columns in ((1, features, hidden), (2, hidden, data.classes)):
        for of in ("s", "n"):
            tensors[f"W{of}{layer}"] = sparse_weights(rng, rows, columns)
            tensors[f"b{of}{layer}"] = dense_weights(rng, columns)
    return PROGRAM.format(nodes=nodes, features=features, hidden=hidden, classes=data.classes), tensors
