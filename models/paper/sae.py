"""Sparse autoencoder, as the programs behind the FuseFlow paper have it: two linear layers with pruned weights."""

import numpy as np
from weights import dense_weights, sparse_weights

DATA = "images:imagenet"
SMALL_DATA = "images:side=6"
IMAGENET = 224 * 224

PROGRAM = """
program sae
tensor X[{batch}, {pixels}]     csf
tensor We[{pixels}, {hidden}]   csf
tensor be[{hidden}]             dense
tensor Wd[{hidden}, {pixels}]   csf
tensor bd[{pixels}]             dense

Z0[b, h] = sum(d) X[b, d] * We[d, h]    @encoder
Z[b, h]  = Z0[b, h] + be[h]             @encoder
H[b, h]  = relu(Z[b, h])                @encoder
O0[b, e] = sum(h) H[b, h] * Wd[h, e]    @decoder
O[b, e]  = O0[b, e] + bd[e]             @decoder
output O
"""


def build(data, *, small: bool = False, hidden: int = 0, density: float = 0.1, seed: int = 0):
    """The program and its tensors. `density` of the weights; `hidden` 0: the published 256 up to the size of ImageNet's images, 512
    beyond; or 8 if `small`."""
    if not 0 <= density <= 1:
        raise ValueError(f"a density of {density:g} is not between 0 and 1")
    batch, pixels = data.inputs.shape
    hidden = hidden or (8 if small else 256 if pixels <= IMAGENET else 512)
    rng = np.random.default_rng(seed)
    tensors = {
        "X": data.inputs,
        "We": sparse_weights(rng, pixels, hidden, density),
        "be": dense_weights(rng, hidden),
        "Wd": sparse_weights(rng, hidden, pixels, density),
        "bd": dense_weights(rng, pixels),
    }
    return PROGRAM.format(batch=batch, pixels=pixels, hidden=hidden), tensors
