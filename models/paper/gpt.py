"""GPT-3 small's decoders with BigBird's attention, as the FuseFlow paper writes them: one projection for queries, keys and values, a norm
of twelve operators without weights, a relu where GPT-3 has a GELU.

`scores * mask` there keeps the places that the mask stores, and the softmax visits no others: here, masked places are -inf.
"""

import numpy as np
from weights import normal_weights

DATA = "bigbird:block=64"
SMALL_DATA = "bigbird:block=4,length=16,features=12"

INPUTS = """
program gpt
tensor x[{batch}, {length}, {width}]   dense
tensor M[{length}, {length}]           csf
"""

WEIGHTS = """
tensor Wt{n}[{width}, {width}]   dense
tensor bt{n}[{width}]            dense
tensor Wo{n}[{width}, {width}]   dense
tensor bo{n}[{width}]            dense
tensor W1{n}[{width}, {inner}]   dense
tensor b1{n}[{inner}]            dense
tensor W2{n}[{inner}, {width}]   dense
tensor b2{n}[{width}]            dense
tensor O{n}[{batch}, {heads}, {length}, {head}]   dense
"""

NORM = """
{y}.sum[b, l]    = sum(k) {x}[b, l, k]                     @{path}
{y}.mean[b, l]   = {y}.sum[b, l] / {width}                 @{path}
{y}.diff[b, l, k] = {x}[b, l, k] - {y}.mean[b, l]          @{path}
{y}.square[b, l, k] = {y}.diff[b, l, k] * {y}.diff[b, l, k]   @{path}
{y}.squares[b, l] = sum(k) {y}.square[b, l, k]             @{path}
{y}.var[b, l]    = {y}.squares[b, l] / {width}             @{path}
{y}.sum2[b, l]   = sum(k) {x}[b, l, k]                     @{path}
{y}.mean2[b, l]  = {y}.sum2[b, l] / {width}                @{path}
{y}.eps[b, l]    = {y}.var[b, l] + 1e-5                    @{path}
{y}.rsqrt[b, l]  = rsqrt({y}.eps[b, l])                    @{path}
{y}.diff2[b, l, k] = {x}[b, l, k] - {y}.mean2[b, l]        @{path}
{y}[b, l, k]     = {y}.diff2[b, l, k] * {y}.rsqrt[b, l]    @{path}
"""

DECODER = """
{norm1}
p0{n}[b, l, e] = sum(k) y{n}[b, l, k] * Wt{n}[k, e]   @{path}
p{n}[b, l, e]  = p0{n}[b, l, e] + bt{n}[e]            @{path}

Q{n}[b, h, i, m] = p{n}[b, i, h*{head} + m]           @{path}
K{n}[b, h, m, j] = p{n}[b, j, h*{head} + m]           @{path}
V{n}[b, h, j, d] = p{n}[b, j, h*{head} + d]           @{path}

S{n}[b, h, i, j]  = sum(m) Q{n}[b, h, i, m] * K{n}[b, h, m, j]        @{path}
P{n}[b, h, i, j]  = where(M[i, j] == 0, -inf, S{n}[b, h, i, j])       @{path}
P8{n}[b, h, i, j] = P{n}[b, h, i, j] / {scale}                        @{path}
m{n}[b, h, i]     = max(j) P8{n}[b, h, i, j]                          @{path}
D{n}[b, h, i, j]  = P8{n}[b, h, i, j] - m{n}[b, h, i]                 @{path}
E{n}[b, h, i, j]  = exp(D{n}[b, h, i, j])                             @{path}
t{n}[b, h, i]     = sum(j) E{n}[b, h, i, j]                           @{path}
A{n}[b, h, i, j]  = E{n}[b, h, i, j] / t{n}[b, h, i]                  @{path}
O{n}[b, h, i, d]  = sum(j) A{n}[b, h, i, j] * V{n}[b, h, j, d]        @{path}

a{n}[b, i, h*{head} + d] = O{n}[b, h, i, d]                           @{path}

o0{n}[b, l, e] = sum(k) a{n}[b, l, k] * Wo{n}[k, e]   @{path}
o{n}[b, l, e]  = o0{n}[b, l, e] + bo{n}[e]            @{path}
r{n}[b, l, e]  = o{n}[b, l, e] + {x}[b, l, e]         @{path}
{norm2}
f0{n}[b, l, g] = sum(k) z{n}[b, l, k] * W1{n}[k, g]   @{path}
f1{n}[b, l, g] = f0{n}[b, l, g] + b1{n}[g]            @{path}
f{n}[b, l, g]  = relu(f1{n}[b, l, g])                 @{path}
g0{n}[b, l, e] = sum(g) f{n}[b, l, g] * W2{n}[g, e]   @{path}
g{n}[b, l, e]  = g0{n}[b, l, e] + b2{n}[e]            @{path}
x{n}[b, l, e]  = g{n}[b, l, e] + r{n}[b, l, e]        @{path}
"""


def build(data, *, small: bool = False, decoders: int = 0, heads: int = 0, batch: int = 1, seed: int = 0):
    """The program and its tensors, for a sequence with its mask; the block of the mask, the length and the width are the data's.
    `decoders`, `heads` 0: the published 12, or 2 decoders of 3 heads if `small`."""
    decoders, heads = decoders or (2 if small else 12), heads or (3 if small else 12)
    length, width = data.inputs.shape
    if width % heads:
        raise ValueError(f"{width} features are not {heads} heads of one size")
    sizes = {"batch": batch, "length": length, "width": width, "inner": 4 * width, "heads": heads, "head": width // heads}
    sizes["scale"] = sizes["head"] ** 0.5
    rng = np.random.default_rng(seed)
    text, x = INPUTS.format(**sizes), "x"
    tensors = {"x": np.broadcast_to(data.inputs, (batch, length, width)), "M": data.edges}
    for n in range(decoders):
        text += WEIGHTS.format(n=n, **sizes)
        shapes = {"t": (width, width), "o": (width, width), "1": (width, 4 * width), "2": (4 * width, width)}
        for name, shape in shapes.items():
            tensors[f"W{name}{n}"] = normal_weights(rng, *shape)
            tensors[f"b{name}{n}"] = rng.standard_normal(shape[1], dtype=np.float32)
    for n in range(decoders):
        path = f"decoders.{n}"
        norms = {f"norm{k}": NORM.format(y=f"{y}{n}", x=of, path=path, **sizes) for k, y, of in ((1, "y", x), (2, "z", f"r{n}"))}
        text += DECODER.format(n=n, x=x, path=path, **norms, **sizes)
        x = f"x{n}"
    return text + f"output {x}\n", tensors
