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
tensor d{n}.Wt[{width}, {width}]   dense
tensor d{n}.bt[{width}]            dense
tensor d{n}.Wo[{width}, {width}]   dense
tensor d{n}.bo[{width}]            dense
tensor d{n}.W1[{width}, {inner}]   dense
tensor d{n}.b1[{inner}]            dense
tensor d{n}.W2[{inner}, {width}]   dense
tensor d{n}.b2[{width}]            dense
tensor d{n}.O[{batch}, {heads}, {length}, {head}]   dense
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
d{n}.p0[b, l, e] = sum(k) d{n}.y[b, l, k] * d{n}.Wt[k, e]   @{path}
d{n}.p[b, l, e]  = d{n}.p0[b, l, e] + d{n}.bt[e]            @{path}

d{n}.Q[b, h, i, m] = d{n}.p[b, i, h*{head} + m]           @{path}
d{n}.K[b, h, m, j] = d{n}.p[b, j, h*{head} + m]           @{path}
d{n}.V[b, h, j, d] = d{n}.p[b, j, h*{head} + d]           @{path}

d{n}.S[b, h, i, j]  = sum(m) d{n}.Q[b, h, i, m] * d{n}.K[b, h, m, j]        @{path}
d{n}.P[b, h, i, j]  = where(M[i, j] == 0, -inf, d{n}.S[b, h, i, j])       @{path}
d{n}.P8[b, h, i, j] = d{n}.P[b, h, i, j] / {scale}                        @{path}
d{n}.m[b, h, i]     = max(j) d{n}.P8[b, h, i, j]                          @{path}
d{n}.D[b, h, i, j]  = d{n}.P8[b, h, i, j] - d{n}.m[b, h, i]                 @{path}
d{n}.E[b, h, i, j]  = exp(d{n}.D[b, h, i, j])                             @{path}
d{n}.t[b, h, i]     = sum(j) d{n}.E[b, h, i, j]                           @{path}
d{n}.A[b, h, i, j]  = d{n}.E[b, h, i, j] / d{n}.t[b, h, i]                  @{path}
d{n}.O[b, h, i, d]  = sum(j) d{n}.A[b, h, i, j] * d{n}.V[b, h, j, d]        @{path}

d{n}.a[b, i, h*{head} + d] = d{n}.O[b, h, i, d]                           @{path}

d{n}.o0[b, l, e] = sum(k) d{n}.a[b, l, k] * d{n}.Wo[k, e]   @{path}
d{n}.o[b, l, e]  = d{n}.o0[b, l, e] + d{n}.bo[e]            @{path}
d{n}.r[b, l, e]  = d{n}.o[b, l, e] + {x}[b, l, e]         @{path}
{norm2}
d{n}.f0[b, l, g] = sum(k) d{n}.z[b, l, k] * d{n}.W1[k, g]   @{path}
d{n}.f1[b, l, g] = d{n}.f0[b, l, g] + d{n}.b1[g]            @{path}
d{n}.f[b, l, g]  = relu(d{n}.f1[b, l, g])                 @{path}
d{n}.g0[b, l, e] = sum(g) d{n}.f[b, l, g] * d{n}.W2[g, e]   @{path}
d{n}.g[b, l, e]  = d{n}.g0[b, l, e] + d{n}.b2[e]            @{path}
d{n}.x[b, l, e]  = d{n}.g[b, l, e] + d{n}.r[b, l, e]        @{path}
"""


def build(data, *, small: bool = False, decoders: int = 0, heads: int = 0, batch: int = 1, seed: int = 0):
    """The program and its tensors, for a sequence with its mask; the block of the mask, the length and the width are the data's.
    `decoders`, `heads` 0: the published 12, or 2 decoders of 3 heads if `small`."""
    decoders, heads = decoders or (2 if small else 12), heads or (3 if small else 12)
    length, width = data.inputs.shape
    if decoders < 1 or heads < 1 or width % heads:
        raise ValueError(
            f"{decoders} decoders of {heads} heads: there is at least one of each, and {width} features are shared evenly"
        )
    sizes = {"batch": batch, "length": length, "width": width, "inner": 4 * width, "heads": heads, "head": width // heads}
    sizes["scale"] = sizes["head"] ** 0.5
    rng = np.random.default_rng(seed)
    text, x = INPUTS.format(**sizes), "x"
    tensors = {"x": np.broadcast_to(data.inputs, (batch, length, width)), "M": data.edges}
    for n in range(decoders):
        text += WEIGHTS.format(n=n, **sizes)
        shapes = {"t": (width, width), "o": (width, width), "1": (width, 4 * width), "2": (4 * width, width)}
        for name, shape in shapes.items():
            tensors[f"d{n}.W{name}"] = normal_weights(rng, *shape)
            tensors[f"d{n}.b{name}"] = rng.standard_normal(shape[1], dtype=np.float32)
    for n in range(decoders):
        path = f"decoders.{n}"
        norm1 = NORM.format(y=f"d{n}.y", x=x, path=path, **sizes)
        norm2 = NORM.format(y=f"d{n}.z", x=f"d{n}.r", path=path, **sizes)
        text += DECODER.format(n=n, x=x, path=path, norm1=norm1, norm2=norm2, **sizes)
        x = f"d{n}.x"
    return text + f"output {x}\n", tensors
