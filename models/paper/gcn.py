"""Two-layer GCN with softmax, as the FuseFlow paper writes it: the adjacency raw, 0/1 without self loops; (A X) W, not A (X W)."""

import numpy as np
from weights import dense_weights, sparse_weights

PROGRAM = """
program gcn
tensor A[{nodes}, {nodes}]         csf
tensor X[{nodes}, {features}]      dense
tensor W1[{features}, {hidden}]    csf
tensor b1[{hidden}]                dense
tensor W2[{hidden}, {classes}]     csf
tensor b2[{classes}]               dense

T0[i, f] = sum(k) A[i, k] * X[k, f]     @layer1
T1[i, h] = sum(f) T0[i, f] * W1[f, h]   @layer1
T2[i, h] = T1[i, h] + b1[h]             @layer1
H[i, h]  = max(T2[i, h], 0)             @layer1

T4[n, h] = sum(i) A[n, i] * H[i, h]     @layer2
T5[n, c] = sum(h) T4[n, h] * W2[h, c]   @layer2
T6[n, c] = T5[n, c] + b2[c]             @layer2
m[n]     = max(c) T6[n, c]              @layer2
S[n, c]  = T6[n, c] - m[n]              @layer2
E[n, c]  = exp(S[n, c])                 @layer2
Y[n, c]  = E[n, c] / (sum(d) E[n, d])   @layer2
output Y
"""


def softening(tensors) -> float:
    """A power of two: with the last weights times it, the scores of a usual node lie a few units apart. With integers a softmax says no
    more than which is largest, and its check would see nothing else."""
    a, x = tensors["A"], tensors["X"]
    hidden = np.maximum(a @ (x @ tensors["W1"].toarray()) + tensors["b1"], 0)
    scores = a @ (hidden @ tensors["W2"].toarray()) + tensors["b2"]
    return 2.0 ** -round(np.log2(np.median(np.ptp(scores, axis=1)) / 4 + 1))


def build(data, *, small: bool = False, hidden: int = 0, seed: int = 0):
    """The program and its tensors. `hidden` 0: the published 16, or 4 if `small`."""
    nodes, features = data.inputs.shape
    hidden = hidden or (4 if small else 16)
    rng = np.random.default_rng(seed)
    tensors = {
        "A": data.matrix(default="raw"),
        "X": data.inputs,
        "W1": sparse_weights(rng, features, hidden),
        "b1": dense_weights(rng, hidden),
        "W2": sparse_weights(rng, hidden, data.classes),
        "b2": dense_weights(rng, data.classes),
    }
    soft = np.float32(softening(tensors))
    tensors |= {"W2": tensors["W2"] * soft, "b2": tensors["b2"] * soft}
    return PROGRAM.format(nodes=nodes, features=features, hidden=hidden, classes=data.classes), tensors
