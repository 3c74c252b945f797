"""Unions of fibers against sets of coordinates, one by one: of copies, of fibers with gaps, and of any others."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from itertools import pairwise, product

import numpy as np
import pytest

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.accumulator_unions import FiberUnion, union_fibers
from fuseflow.estimate.counted.stream_trie import EMPTY, FiberLevel, FiberNest, Ints, PerFiber, by_element, positions
from fuseflow.estimate.program import Estimator

SIZES = (5, 3, 4)
Coordinates = set[tuple[int, ...]]


def level_of(fibers: list[list[int]], size: int) -> FiberLevel:
    crds = [c for fiber in fibers for c in fiber]
    return FiberLevel(positions(np.array([len(f) for f in fibers], dtype=np.int64)), np.array(crds, dtype=np.int64), size)


def random_level(rng: np.random.Generator, size: int) -> FiberLevel:
    density = rng.choice([0.3, 0.8, 1.0])
    fibers = [[c for c in range(size) if rng.random() < density] for _ in range(rng.integers(1, 4))]
    level = level_of(fibers, size)
    return level.copies(rng.integers(0, level.fibers, rng.integers(1, 7))) if rng.random() < 0.6 else level


def random_nests(rng: np.random.Generator, depth: int) -> list[FiberNest]:
    """Levels of which the links are one for each element or one for each fiber. Some elements have nothing below."""
    levels = [random_level(rng, size) for size in SIZES[:depth]]
    nests = [FiberNest(None, np.zeros(1, dtype=np.int64), levels[0])]
    for upper, lower in pairwise(levels):
        shared, first = rng.random() < 0.6, EMPTY if rng.random() < 0.3 else 0
        links = rng.integers(first, lower.fibers, upper.fibers if shared else upper.elements)
        nests.append(FiberNest(nests[-1], PerFiber(upper, links) if shared else links, lower))
    return nests


def below(levels: list[FiberLevel], links: list[Ints], fiber: int) -> Coordinates:
    """The coordinates below a fiber of the first level, one by one."""
    if fiber < 0:
        return set()
    at = range(int(levels[0].pos[fiber]), int(levels[0].pos[fiber + 1]))
    if len(levels) == 1:
        return {(int(levels[0].crd[e]),) for e in at}
    return {(int(levels[0].crd[e]), *rest) for e in at for rest in below(levels[1:], links[1:], int(links[0][e]))}


def coordinates(union: FiberUnion, group: int) -> Coordinates:
    return below(list(union.levels), [by_element(links) for links in union.links], int(union.fiber[group]))


@pytest.mark.parametrize(("depth", "seed"), list(product((1, 2, 3), range(60))))
def test_a_union_has_the_coordinates_of_its_members(depth: int, seed: int):
    rng = np.random.default_rng(seed)
    nests, groups = random_nests(rng, depth), int(rng.integers(1, 5))
    group = np.sort(rng.integers(0, groups, rng.integers(0, 9)))
    member = rng.integers(EMPTY, nests[0].level.fibers, len(group))
    union = union_fibers(CountMemo(), nests, group, member, groups)
    levels, links = [nest.level for nest in nests], [nest.link for nest in nests[1:]]
    for g in range(groups):
        members = (below(levels, links, int(m)) for m in member[group == g])
        assert coordinates(union, g) == set().union(*members)


def test_a_union_of_copies_is_a_copy():
    """Every row of a matrix, of 3 columns, below each of 4 features: one fiber of columns, with one fiber of features below."""
    dense, rows = level_of([[0, 1, 2]], 3), level_of([[0], [1], [0, 2], [3]], 4)
    outer = dense.copies(np.zeros(4, dtype=np.int64))
    nests = [FiberNest(None, np.zeros(1, dtype=np.int64), outer)]
    nests.append(FiberNest(nests[0], PerFiber(outer, np.arange(4)), rows))
    union = union_fibers(CountMemo(), nests, np.zeros(4, dtype=np.int64), np.arange(4), 1)
    assert isinstance(union.links[0], PerFiber) and union.levels[0].fibers == 1
    assert coordinates(union, 0) == set(product(range(3), range(4)))


@pytest.mark.parametrize("order", ["i, f, k", "f, i, k", "f, k, i"])
def test_counting_takes_no_memory_for_dense_elements(order: str):
    """2,000 nodes of 600 features are 9.6 MB of coordinates. None of them is written out."""
    nodes, features, hidden = 2000, 600, 4
    text = f"""
tensor A[{nodes}, {nodes}] csr
tensor X[{nodes}, {features}] dense
tensor W[{features}, {hidden}] csr
T[i, f] = sum(k) A[i, k] * X[k, f]
Y[i, h] = sum(f) T[i, f] * W[f, h]
output Y
"""
    rng = np.random.default_rng(0)
    adjacency = np.zeros((nodes, nodes), dtype=np.float32)
    adjacency[rng.integers(0, nodes, 4000), rng.integers(0, nodes, 4000)] = 1
    tensors = {
        "A": adjacency,
        "X": np.ones((nodes, features), dtype=np.float32),
        "W": (rng.random((features, hidden)) < 0.5).astype(np.float32),
    }
    schedule = ff.Schedule.fuse("none").order("T", order).order("Y", "f, i, h")
    compiled = ff.compile(parse(text), tensors=tensors, schedule=schedule, machine="ideal")
    compiled.estimate(Estimator())
    tracemalloc.start()
    try:
        estimate = compiled.estimate(Estimator())
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert estimate.exact


def test_a_nest_is_freed_with_its_last_reference():
    """Nests hold large arrays. In a circle of references they stay until the garbage collector comes, which is seldom."""
    nests = random_nests(np.random.default_rng(1), 3)
    innermost = weakref.ref(nests[-1])
    gc.disable()
    try:
        assert innermost().depth == len(innermost().chain) == 3
        nests.clear()
        assert innermost() is None
    finally:
        gc.enable()
