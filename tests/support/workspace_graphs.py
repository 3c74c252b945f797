"""A graph that has workspaces of many sizes side by side: an accumulate and a permute of each number of keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fuseflow.samml import nodes as n
from fuseflow.samml.text import parse
from fuseflow.tensors import Format, Tensor, pack

SIZES = (*range(1, 71), 256)
"""The numbers of keys at which workspaces are compared with their specification."""
ROWS = 3
"""The rows of a matrix that is added up, so that both workspaces of an accumulate are used again."""
DECLARED = """
tensor A{keys}[{rows}, {keys}] csr f32
tensor a{keys}[{keys}] (compressed) f32
output a{keys}
tensor B{keys}[{high}, {low}] csr f32
tensor b{keys}[{low}, {high}] (compressed, compressed) f32
output b{keys}
"""
NODES = """
A{keys}_i = scan(root) A{keys}.0
A{keys}_j = scan(A{keys}_i.ref) A{keys}.1
A{keys}_v = load(A{keys}_j.ref) A{keys}
sums{keys} = accumulate(A{keys}_i.crd, A{keys}_j.crd, A{keys}_v) sum order=1
a{keys}_j = write(sums{keys}.crd) a{keys}.0
a{keys}_v = write(sums{keys}.val) a{keys}.vals
B{keys}_i = scan(root) B{keys}.0
B{keys}_j = scan(B{keys}_i.ref) B{keys}.1
B{keys}_v = load(B{keys}_j.ref) B{keys}
turned{keys} = permute(B{keys}_i.crd, B{keys}_j.crd, B{keys}_v) order=1,0
b{keys}_j = write(turned{keys}.crd0) b{keys}.0
b{keys}_i = write(turned{keys}.crd1) b{keys}.1
b{keys}_v = write(turned{keys}.val) b{keys}.vals
"""


def sides(keys: int) -> tuple[int, int]:
    """Two sizes with this product, both above 1 if that is possible.

    >>> sides(12), sides(7)
    ((2, 6), (1, 7))
    """
    high = next((k for k in range(2, keys) if keys % k == 0), 1)
    return high, keys // high


def workspace_graph(sizes: Sequence[int]) -> n.Graph:
    """The graph of workspaces with these numbers of keys."""
    places = [{"keys": keys, "rows": ROWS, "high": sides(keys)[0], "low": sides(keys)[1]} for keys in sizes]
    declared = "".join(DECLARED.format(**place) for place in places)
    return parse(declared + "root = root()\n" + "".join(NODES.format(**place) for place in places))


def workspace_tensors(sizes: Sequence[int], density: float = 0.5) -> Mapping[str, Tensor]:
    """Matrices of which every row has the last key, too."""
    rng = np.random.default_rng(7)
    return {
        f"{name}{keys}": _matrix(rng, shape, density)
        for keys in sizes
        for name, shape in (("A", (ROWS, keys)), ("B", sides(keys)))
    }


def _matrix(rng: np.random.Generator, shape: tuple[int, int], density: float) -> Tensor:
    values = np.where(rng.random(shape) < density, rng.standard_normal(shape).astype(np.float32), 0)
    values[:, -1] = 1
    return pack(values.tolist(), Format.parse("csr", 2))
