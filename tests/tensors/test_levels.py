"""Level formats: fibers one by one, all at once, and what they store."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.tensors import Format, pack
from fuseflow.tensors.levels import LEVELS

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
    assert sorted(LEVELS) == ["compressed", "compressed(nonunique)", "dense", "singleton", "singleton(nonunique)"]


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
