"""What each primitive computes: random nested lists through it, against the same operation on nested lists.

A tree of m levels maps coordinates to trees of m - 1 levels, or to values. A stream shows one level of many trees, which stand in
`plain` more levels of lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import drive, inputs_of
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import N, Stream, check, decode, encode
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels.compressed import CompressedFibers

VALUES = st.integers(-3, 5).map(float)
PLAIN = st.integers(0, 2)


def trees(levels: int, leaf: st.SearchStrategy[Any] = VALUES) -> st.SearchStrategy[Any]:
    return leaf if levels == 0 else st.dictionaries(st.integers(0, 5), trees(levels - 1, leaf), max_size=4)


def nests(plain: int, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner if plain == 0 else st.lists(nests(plain - 1, inner), max_size=3)


def each(nest: Any, plain: int, function: Callable[[Any], Any]) -> Any:
    return function(nest) if plain == 0 else [each(x, plain - 1, function) for x in nest]


def crds(nest: Any, plain: int, level: int) -> Stream:
    """The stream of the coordinates of one level of the trees."""

    def lists(tree: Any, below: int) -> list[Any]:
        return [c if below == 0 else lists(tree[c], below - 1) for c in sorted(tree)]

    return encode(each(nest, plain, lambda tree: lists(tree, level)), plain + level + 1)


def vals(nest: Any, plain: int, levels: int) -> Stream:
    """The stream of the values of trees of `levels` levels."""

    def lists(tree: Any, below: int) -> Any:
        return tree if below == 0 else [lists(tree[c], below - 1) for c in sorted(tree)]

    return encode(each(nest, plain, lambda tree: lists(tree, levels)), plain + levels)


def streams(nest: Any, plain: int, levels: int) -> list[Stream]:
    return [*(crds(nest, plain, level) for level in range(levels)), vals(nest, plain, levels)]


def driven(node: n.Node, inputs: list[Stream], depths: list[int], kinds: str, **options: Any) -> list[Stream]:
    """The outputs, each checked to be well-formed."""
    outputs = drive(node, *inputs, **options).tokens
    for stream, depth, kind in zip(outputs, depths, kinds, strict=True):
        check(stream, depth, "crd" if kind == "c" else "")
    return outputs


@given(st.data(), PLAIN)
def test_scan(data: st.DataObject, plain: int) -> None:
    fibers = data.draw(st.lists(st.sets(st.integers(0, 5)).map(sorted), min_size=1, max_size=4))
    pos = np.cumsum([0, *map(len, fibers)])
    level = CompressedFibers(6, pos, np.array([c for f in fibers for c in f], dtype=np.int64))
    tensors = {"A": Tensor((6,), Format.of("compressed"), (level,), np.zeros(pos[-1]))}
    refs = data.draw(nests(plain, st.integers(0, len(fibers) - 1) | st.just(N) if plain else st.integers(0, len(fibers) - 1)))
    node = n.Scan("s", inputs_of(1), "A", 0)
    found = driven(node, [encode(refs, plain)], [plain + 1] * 2, "cr", tensors=tensors)
    assert found[0] == encode(each(refs, plain, lambda r: [] if r is N else fibers[r]), plain + 1)
    assert found[1] == encode(each(refs, plain, lambda r: [] if r is N else list(range(pos[r], pos[r + 1]))), plain + 1)


@given(st.data(), PLAIN, st.integers(0, 3))
def test_range(data: st.DataObject, plain: int, size: int) -> None:
    refs = data.draw(nests(plain, st.just(N) | st.just(1)))
    (found,) = driven(n.Range("r", inputs_of(1), size), [encode(refs, plain)], [plain + 1], "c")
    assert found == encode(each(refs, plain, lambda _: list(range(size))), plain + 1)


@given(st.data(), PLAIN)
def test_repeat(data: st.DataObject, plain: int) -> None:
    """Every element of x stands above a fiber of the signal."""
    pairs = data.draw(nests(plain, st.tuples(VALUES | st.just(N), st.lists(st.integers(0, 3) | st.just(N), max_size=3))))
    x, signal = (encode(each(pairs, plain, lambda p, k=k: p[k]), plain + k) for k in (0, 1))
    (found,) = driven(n.Repeat("r", inputs_of(2)), [x, signal], [plain + 1], "v")
    assert found == encode(each(pairs, plain, lambda p: [p[0]] * len(p[1])), plain + 1)


@pytest.mark.parametrize("kind", ["intersect", "union", "left"])
@given(data=st.data(), plain=PLAIN, sides=st.integers(1, 3))
def test_join(kind: str, data: st.DataObject, plain: int, sides: int) -> None:
    payloads = tuple(data.draw(st.lists(st.integers(0, 2), min_size=sides, max_size=sides)))
    leaf = st.lists(VALUES | st.just(N), min_size=2, max_size=2)
    rows = data.draw(nests(plain, st.tuples(*[trees(1, leaf)] * sides)))

    def kept(row: tuple[dict[int, Any], ...]) -> list[int]:
        sets = [set(tree) for tree in row]
        whole = {"intersect": set.intersection(*sets), "union": set.union(*sets), "left": sets[0]}
        return sorted(whole[kind])

    inputs, expected = [], [encode(each(rows, plain, kept), plain + 1)]
    for s, count in enumerate(payloads):
        inputs.append(crds(each(rows, plain, lambda row, s=s: row[s]), plain, 0))
        for k in range(count):
            inputs.append(encode(each(rows, plain, lambda row, s=s, k=k: [row[s][c][k] for c in sorted(row[s])]), plain + 1))
            out = each(rows, plain, lambda row, s=s, k=k: [row[s][c][k] if c in row[s] else N for c in kept(row)])
            expected.append(encode(out, plain + 1))
    found = driven(
        n.Join("j", inputs_of(len(inputs)), kind, payloads), inputs, [plain + 1] * len(expected), "c" + "v" * sum(payloads)
    )
    assert found == expected


@given(st.data(), PLAIN, st.integers(1, 3))
def test_align(data: st.DataObject, plain: int, below: int) -> None:
    rows = data.draw(nests(plain, st.tuples(trees(1 + below), st.sets(st.integers(0, 5)))))
    old = each(rows, plain, lambda row: row[0])
    new = each(rows, plain, lambda row: {c: {} for c in row[1]})
    moved = each(rows, plain, lambda row: {c: row[0].get(c, {}) for c in row[1]})
    ports = [crds(old, plain, 0), crds(new, plain, 0)]
    align = n.Align("a", inputs_of(3))
    depth = plain + 1 + below
    assert driven(align, [*ports, vals(old, plain, 1 + below)], [depth], "v") == [vals(moved, plain, 1 + below)]
    assert driven(align, [*ports, crds(old, plain, below)], [depth], "c") == [crds(moved, plain, below)]


@given(st.data(), PLAIN, st.sampled_from(["sum", "max", "min", "prod"]))
def test_reduce(data: st.DataObject, plain: int, function: str) -> None:
    fold = {"sum": sum, "max": lambda v: max(v, default=-np.inf), "min": lambda v: min(v, default=np.inf), "prod": np.prod}
    rows = data.draw(nests(plain, st.lists(VALUES, max_size=4)))
    (found,) = driven(n.Reduce("r", inputs_of(1), function), [encode(rows, plain + 1)], [plain], "v")
    assert found == encode(each(rows, plain, lambda row: float(fold[function](row))), plain)


@given(st.data(), st.integers(0, 1), st.integers(1, 3))
def test_accumulate(data: st.DataObject, plain: int, order: int) -> None:
    rows = data.draw(nests(plain, trees(order + 1)))

    def merged(subtrees: list[Any], levels: int) -> Any:
        if levels == 0:
            return sum(subtrees)
        keys = sorted({c for tree in subtrees for c in tree})
        found = {c: merged([tree[c] for tree in subtrees if c in tree], levels - 1) for c in keys}
        return {c: x for c, x in found.items() if x != {}}  # a coordinate with nothing below it leaves no entry

    sums = each(rows, plain, lambda tree: merged(list(tree.values()), order))
    node = n.Accumulate("a", inputs_of(order + 2), "sum", order)
    depths = [plain + 1 + k for k in range(order)] + [plain + order]
    assert driven(node, streams(rows, plain, order + 1), depths, "c" * order + "v") == streams(sums, plain, order)


@given(st.data(), PLAIN, st.integers(2, 4).flatmap(lambda levels: st.permutations(range(levels))))
def test_permute(data: st.DataObject, plain: int, order: list[int]) -> None:
    levels = len(order)
    rows = data.draw(nests(plain, trees(levels)))

    def entries(tree: Any, below: int) -> dict[tuple[int, ...], float]:
        return {(c, *at): v for c in tree for at, v in entries(tree[c], below - 1).items()} if below else {(): tree}

    def turned(tree: Any) -> Any:
        found: dict[int, Any] = {}
        for at, value in entries(tree, levels).items():
            row = found
            *above, last = [at[level] for level in order]
            for c in above:
                row = row.setdefault(c, {})
            row[last] = value
        return found

    node = n.Permute("p", inputs_of(levels + 1), tuple(order))
    depths = [plain + 1 + k for k in range(levels)] + [plain + levels]
    found = driven(node, streams(rows, plain, levels), depths, "c" * levels + "v")
    assert found == streams(each(rows, plain, turned), plain, levels)


MAGNITUDES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.5, np.inf, -np.inf, np.nan])


@given(st.data(), st.integers(0, 1), st.integers(1, 3), st.integers(1, 5), st.sampled_from([0, 1, 2, 3]))
def test_select(data: st.DataObject, plain: int, levels: int, keep: int, every: int) -> None:
    """One after the other, the entry leaves of which no other is smaller, and of these the last one."""
    every = every if levels == 1 else 0
    keep = min(keep, every or keep)
    rows = data.draw(nests(plain, trees(levels, MAGNITUDES)))

    def entries(tree: Any, below: int) -> dict[tuple[int, ...], float]:
        return {(c, *at): v for c in tree for at, v in entries(tree[c], below - 1).items()} if below else {(): tree}

    def size(value: float) -> tuple[bool, float]:
        return (True, 0.0) if np.isnan(value) else (False, abs(value))

    def selected(tree: Any) -> Any:
        groups: dict[int, list[tuple[int, ...]]] = {}
        values = entries(tree, levels)
        for at in sorted(values):
            groups.setdefault(at[0] // every if every else 0, []).append(at)
        result: dict[int, Any] = {}
        for group in groups.values():
            while len(group) > keep:
                least = min(size(values[at]) for at in group)
                group.remove([at for at in group if size(values[at]) == least][-1])
            for at in group:
                row = result
                for c in at[:-1]:
                    row = row.setdefault(c, {})
                row[at[-1]] = values[at]
        return result

    node = n.Select("s", inputs_of(levels + 1), keep, every, levels)
    depths = [plain + 1 + k for k in range(levels)] + [plain + levels]
    result = driven(node, streams(rows, plain, levels), depths, "c" * levels + "v")
    assert repr(result) == repr(streams(each(rows, plain, selected), plain, levels))


@given(st.data(), st.integers(0, 1), st.integers(1, 3), st.sampled_from([None, 0.0]))
def test_drop(data: st.DataObject, plain: int, levels: int, value: float | None) -> None:
    rows = data.draw(nests(plain, trees(levels, VALUES | st.just(N))))

    def pruned(tree: Any, below: int) -> Any:
        if below == 0:
            return None if tree is N or tree == value else tree
        found = {c: pruned(x, below - 1) for c, x in tree.items()}
        return {c: x for c, x in found.items() if x not in (None, {})}

    kept = each(rows, plain, lambda tree: pruned(tree, levels))
    depths = [plain + 1 + k for k in range(levels)] + [plain + levels]
    found = driven(n.Drop("d", inputs_of(levels + 1), value), streams(rows, plain, levels), depths, "c" * levels + "v")
    assert found == streams(kept, plain, levels)


@given(st.data(), PLAIN)
def test_flatten_and_split_are_inverse(data: st.DataObject, plain: int) -> None:
    rows = data.draw(nests(plain, trees(2)))
    flat = each(rows, plain, lambda tree: sorted(6 * c + i for c in tree for i in tree[c]))
    (found,) = driven(n.Flatten("f", inputs_of(2), 6), [crds(rows, plain, 0), crds(rows, plain, 1)], [plain + 1], "c")
    assert found == encode(flat, plain + 1)
    filled = each(rows, plain, lambda tree: {c: below for c, below in tree.items() if below})
    pair = driven(n.SplitLevel("s", inputs_of(1), 6), [found], [plain + 1, plain + 2], "cc")
    assert pair == [crds(filled, plain, 0), crds(filled, plain, 1)]


@given(st.data(), PLAIN)
def test_alu_fills_absent_operands(data: st.DataObject, plain: int) -> None:
    pairs = data.draw(nests(plain, st.tuples(VALUES | st.just(N), VALUES | st.just(N))))
    inputs = [encode(each(pairs, plain, lambda p, k=k: p[k]), plain) for k in (0, 1)]
    (found,) = driven(n.Alu("a", inputs_of(2), "sub", (n.Operand(1.0), n.Operand(2.0))), inputs, [plain], "v")
    result = each(pairs, plain, lambda p: (1.0 if p[0] is N else p[0]) - (2.0 if p[1] is N else p[1]))
    assert decode(found, plain) == result
