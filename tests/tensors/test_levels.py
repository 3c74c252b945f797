"""Level formats: fibers one by one, all at once, and what they store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.tensors import Format, pack
from fuseflow.tensors.levels import LEVELS
from fuseflow.tensors.levels.base import Listed

A = np.array([[0, 5, 0, 6], [0, 0, 0, 0], [7, 0, 0, 0]], dtype=np.float32)


def levels(format):
    return pack(A, Format.parse(format, 2)).levels


def fiber(level, ref):
    crds, refs = level.fiber(ref)
    return list(crds), list(refs)


def test_dense_below_dense_computes_references():
    rows, columns = levels("dense")
    assert fiber(rows, 0) == ([0, 1, 2], [0, 1, 2])
    assert fiber(columns, 2) == ([0, 1, 2, 3], [8, 9, 10, 11])


def test_csr_has_an_empty_fiber_for_an_empty_row():
    _, columns = levels("csr")
    assert [fiber(columns, r) for r in range(3)] == [([1, 3], [0, 1]), ([], []), ([0], [2])]
    assert columns.pos.tolist() == [0, 2, 2, 3]
    assert columns.crd.tolist() == [1, 3, 0]


def test_csc_stores_columns_first():
    columns, rows = levels("csc")
    assert columns.size == 4
    assert [fiber(rows, c)[0] for c in range(4)] == [[2], [0], [], [0]]


def test_dcsr_leaves_empty_rows_out():
    rows, columns = levels("dcsr")
    assert fiber(rows, 0) == ([0, 2], [0, 1])
    assert [fiber(columns, r) for r in range(2)] == [([1, 3], [0, 1]), ([0], [2])]


def test_coo_repeats_rows_but_a_fiber_has_each_coordinate_once():
    rows, columns = levels("coo")
    assert rows.crd.tolist() == [0, 0, 2]
    assert fiber(rows, 0) == ([0, 2], [0, 2])
    assert fiber(columns, 0) == ([1, 3], [0, 1])
    assert fiber(columns, 2) == ([0], [2])


@pytest.mark.parametrize(("name", "pos", "crd"), [("dense", 0, 0), ("csr", 4, 3), ("csc", 5, 3), ("dcsr", 5, 5), ("coo", 2, 6)])
def test_what_a_format_stores(name, pos, crd):
    tensor = pack(A, Format.parse(name, 2))
    assert (tensor.pos_bytes, tensor.crd_bytes) == (4 * pos, 4 * crd)
    assert tensor.nbytes == 4 * (pos + crd) + 4 * (12 if name == "dense" else 3)


def test_names_are_those_of_the_table():
    assert sorted(LEVELS) == ["bitmap", "compressed", "compressed(nonunique)", "dense", "singleton", "singleton(nonunique)"]


def references(tensor, depth):
    """All references into level `depth`, found fiber by fiber."""
    refs = [0]
    for level in tensor.levels[:depth]:
        refs = [r for ref in refs for r in level.fiber(ref)[1]]
    return refs


@given(data=st.data())
def test_fibers_one_by_one_and_all_at_once_agree(packed, data):
    _, tensor = data.draw(packed)
    for depth, level in enumerate(tensor.levels):
        refs = references(tensor, depth)
        chosen = data.draw(st.lists(st.sampled_from(refs), max_size=5)) if refs else []
        owner, crds, found = (x.tolist() for x in level.expand(np.array(chosen, dtype=np.int64)))
        expected = [(n, c, r) for n, ref in enumerate(chosen) for c, r in zip(*level.fiber(ref), strict=True)]
        assert list(zip(owner, crds, found, strict=True)) == expected
        for ref in chosen:
            crds = list(level.fiber(ref)[0])
            assert crds == sorted(set(crds))
        assert all(0 <= r < level.entries for r in found)
        assert all(0 <= c < level.size for _, c, _ in expected)


@given(data=st.data())
def test_levels_have_the_arrays_that_they_declare(packed, data):
    """As many elements as the format says, and fibers that say the same in every way."""
    _, tensor = data.draw(packed)
    parents = 1
    for depth, (level, fibers) in enumerate(zip(tensor.format.levels, tensor.levels, strict=True)):
        declared = {array.name: array.count(parents, fibers.entries) for array in level.arrays(fibers.size)}
        assert {name: len(array) for name, array in fibers.arrays.items()} == declared
        walk, look = fibers.walk(), fibers.look()
        for ref in references(tensor, depth):
            crds, refs = fiber(fibers, ref)
            assert [list(x) for x in look(ref)[:2]] == [crds, refs]
            if isinstance(walk, Listed):
                low, high = int(walk.lows[ref]), int(walk.highs[ref])
                listed = range(low, high) if walk.refs is None else walk.refs[low:high].tolist()
                assert (walk.crds[low:high].tolist(), list(listed)) == (crds, refs)
            else:
                assert (walk.size, level.full, level.stored) == (fibers.size, True, False)
            if level.located:
                there = dict(zip(crds, refs, strict=True))
                assert all(fibers.locate(ref, crd) == there.get(crd) for crd in range(fibers.size))
        parents = fibers.entries


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_facts_fit_together(level):
    """What is full is not searched, what is located or written is unique, and what follows is below what leads."""
    assert not (level.full and level.stored)
    assert level.unique or not (level.located or level.appended)
    assert level.public is None or level.appended
    assert level.expected(10, 0.1) == (10.0 if level.full else 1.0)
    names = [array.kind for array in level.arrays(40)]
    assert len(names) == len(set(names))
    assert level.mlir is None or level.mlir.startswith(level.text.removesuffix("(nonunique)"))
    level.reads(40)
    assert bool(level.points(40)) == (level.located and level.stored)
