"""The end of a graph: what nobody reads yet is written, so that every stream is pressed back on."""

from __future__ import annotations

import math

from fuseflow.samml import nodes as n
from fuseflow.tensors import Format

from .builder import Builder, Known
from .data import INF
from .values import load_of, solid

MOST = 20_000
"""Elements of the largest result that has dense levels."""
WHOLE = {"i32": 2.0**31 - 1, "i64": 2.0**53 - 1}
"""The largest magnitude that is rounded to an integer."""


def write_all(b: Builder) -> None:
    """Write nearly every value that nobody reads, and most coordinates, with some value beside them."""
    for k in [k for k in b.pool if k.kind == "val" and k.port not in b.read]:
        if b.chance(0.9):
            _write(b, k)
    loose = {k.shape: k for k in b.pool if k.kind == "crd" and k.port not in b.read}
    for crd in loose.values():
        if crd.port not in b.read and b.chance(0.7):
            beside = _beside(b, crd)
            if beside is not None:
                _write(b, beside)
    if not b.outputs:
        _write(b, _scalar(b))


def _write(b: Builder, val: Known) -> None:
    chain = b.chain(val.shape, val.depth)
    if chain is None:
        return
    written = solid(b, val)
    assert written is not None
    dims = [b.bound[crd.shape] if crd.shape.full else b.bound[crd.shape] + b.rng.choice((0, 0, 1)) for crd in chain]
    levels = _levels(b, chain, dims)
    order = list(range(len(dims)))
    if b.chance(0.3):
        b.rng.shuffle(order)
    shape = [0] * len(dims)
    for size, dimension in zip(dims, order, strict=True):
        shape[dimension] = size
    fitting = [dtype for dtype, most in WHOLE.items() if written.limit is not None and written.limit <= most]
    dtype = b.rng.choice(("f32", "f64", *fitting))
    fill = b.rng.choice((0.0, 0.0, 1.0) if dtype in WHOLE else (0.0, 0.0, 1.0, -INF))
    name = f"Y{len(b.outputs)}"
    b.outputs.append(n.TensorDecl(name, tuple(shape), Format.of(*levels, order=tuple(order)), dtype, fill))
    for level, crd in enumerate(chain):
        _sink(b, n.WriteLevel(f"write{len(b.nodes)}", (crd.port,), name, level))
    _sink(b, n.WriteValues(f"write{len(b.nodes)}", (written.port,), name))


def _levels(b: Builder, chain: list[Known], dims: list[int]) -> list[str]:
    """Dense and compressed levels. A dense level above a compressed one must receive every coordinate."""
    if math.prod(dims) > MOST or b.chance(0.3):
        return ["compressed"] * len(dims)
    levels: list[str] = []
    stored = False  # whether a compressed level follows
    for crd, size in zip(reversed(chain), reversed(dims), strict=True):
        whole = crd.shape.full and crd.shape.origin[1] == size  # a union with coordinates that are only bounded may be larger
        dense = b.chance(0.6) and (whole or not stored)
        levels.append("dense" if dense else "compressed")
        stored = stored or not dense
    return levels[::-1]


def _beside(b: Builder, crd: Known) -> Known | None:
    """A value at a coordinate: one that is there, or one from outside repeated down to it."""
    above = crd.shape
    levels = 0
    while not (found := [k for k in b.at.get(above, ()) if k.kind == "val"]) and above.parent is not None:
        above, levels = above.parent, levels + 1
    x = b.rng.choice(found) if found else _scalar(b)
    chain = b.chain(crd.shape, levels)
    if chain is None or not b.fits(levels * b.count[crd.shape]):
        return None
    for signal in (*chain[:-1], crd) if chain else ():
        (x,) = b.add(n.Repeat, [x, signal], extra=[(None, x.limit)])
    return x


def _scalar(b: Builder) -> Known:
    """The value of the tensor without dimensions, which every case has."""
    return load_of(b, b.root, next(s for s in b.sources.values() if not s.decl.shape))


def _sink(b: Builder, node: n.Node) -> None:
    b.nodes.append(node)
    b.read.update(node.inputs)
