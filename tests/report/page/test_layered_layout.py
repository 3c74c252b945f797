"""Places in layers: every edge leads down, nothing overlaps, the same graph gives the same places."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fuseflow.report.page.layered_layout import layout_layers, separate

GRAPHS = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=30)
    )
)


@settings(max_examples=30)
@given(GRAPHS)
def test_edges_lead_down_and_nodes_do_not_overlap(case: tuple[int, list[tuple[int, int]]]):
    count, edges = case
    names = [f"n{k}" for k in range(count)]
    links = [(names[a], names[b]) for a, b in edges]
    found = layout_layers(names, links)
    assert found == layout_layers(names, links)
    assert set(found.at) == set(names)
    for a, b in links:
        assert [layer for _, layer in found.bends[a, b]] == list(range(found.at[a][1] + 1, found.at[b][1]))
    for layer in range(found.layers):
        row = sorted(x for x, at in found.at.values() if at == layer)
        assert all(right - left >= 1 - 1e-9 for left, right in pairwise(row))
        assert not row or (row[0] >= 0.5 - 1e-9 and row[-1] <= found.width - 0.5 + 1e-9)


def test_a_chain_is_straight():
    found = layout_layers(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    assert [found.at[name][1] for name in "abc"] == [0, 1, 2]
    assert found.bends["a", "c"] and not found.bends["a", "b"]


def test_nothing_has_no_layers():
    assert layout_layers([], []).layers == 0


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 3)), max_size=12))
def test_apart_keeps_order_and_distance(case: list[tuple[float, float]]):
    wanted, widths = [w for w, _ in case], [w for _, w in case]
    found = separate(wanted, widths)
    for k in range(1, len(found)):
        assert found[k] - found[k - 1] >= (widths[k - 1] + widths[k]) / 2 - 1e-6
