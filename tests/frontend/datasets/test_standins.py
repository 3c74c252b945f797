"""Stand-ins have the published counts, degrees and nothing else of the graphs that they are named after."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseflow.errors import DataError
from fuseflow.frontend.data import load_data
from fuseflow.frontend.datasets.standins import PUBLISHED_COUNTS, generate_standin


def degrees(graph) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    return np.diff(graph.edges.indptr), np.bincount(graph.edges.indices, minlength=graph.nodes)


@pytest.mark.parametrize("name", ["cora", "citeseer", "cora_ml", "dblp"])
def test_published_counts(name: str) -> None:
    graph, known = generate_standin(name, 0), PUBLISHED_COUNTS[name]
    out, into = degrees(graph)
    assert (graph.nodes, graph.edges.nnz, graph.classes) == (known.nodes, known.entries, known.classes)
    assert graph.features.shape == (known.nodes, known.features)
    assert (out == into).all() and (graph.edges != graph.edges.T).nnz == 0
    assert not graph.edges.diagonal().any() and set(graph.edges.data) == {1.0}
    assert int((out * into).sum()) == pytest.approx(known.entries * (known.neighbours or 0), rel=1e-4)


def test_cora_has_the_sum_of_squares_of_its_files() -> None:
    out, into = degrees(generate_standin("cora", 7))
    assert int((out * into).sum()) == 115_158
    assert out.max() > 8 * out.mean() and np.median(out) < out.mean()  # a tail, most nodes below the mean


@pytest.mark.parametrize(("name", "scale"), [("collab", 0.1), ("mag", 0.05)])
def test_degrees_that_nobody_published_end_at_the_structural_cut_off(name: str, scale: float) -> None:
    graph, known = generate_standin(name, 0, scale), PUBLISHED_COUNTS[name]
    out, into = degrees(graph)
    assert known.neighbours is None
    assert graph.edges.nnz == pytest.approx(known.entries * scale, abs=1)
    assert 0.5 * np.sqrt(graph.edges.nnz) < into.max() <= np.sqrt(graph.edges.nnz) + 1
    assert np.median(into) < into.mean() < into.max() / 8  # a tail, most nodes below the mean
    assert sorted(out) == sorted(into)
    assert isinstance(graph.features, np.ndarray) and graph.features.dtype == np.float32
    assert ((graph.edges != graph.edges.T).nnz > 0) == known.directed


def test_what_a_paper_cites_says_nothing_about_how_often_it_is_cited() -> None:
    out, into = degrees(generate_standin("mag", 0, 0.05))
    assert int((out * into).sum()) == pytest.approx(out.sum() * into.mean(), rel=0.2)


def test_the_seed_decides() -> None:
    one, same, other = generate_standin("cora", 3), generate_standin("cora", 3), generate_standin("cora", 4)
    assert (one.edges != same.edges).nnz == 0 and (one.features != same.features).nnz == 0
    assert (one.edges != other.edges).nnz > 0


@given(name=st.sampled_from(sorted(PUBLISHED_COUNTS)), scale=st.floats(1e-6, 2e-3), seed=st.integers(0, 5))
def test_small_scales_are_graphs_or_refused(name: str, scale: float, seed: int) -> None:
    try:
        graph = generate_standin(name, seed, scale)
    except DataError:
        return
    assert not graph.edges.diagonal().any() and graph.edges.has_canonical_format


def test_stand_ins_say_so() -> None:
    data = load_data("synthetic:cora,scale=0.1,seed=2")
    assert data.name == "synthetic:cora,scale=0.1,seed=2"
    assert "synthetic" in data.notice and "cora" in data.notice and "0.1" in data.notice
    assert "0.1" not in load_data("synthetic:cora").notice
