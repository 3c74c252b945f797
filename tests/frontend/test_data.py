"""Data sets by name: karate, random graphs, options and their errors."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fuseflow.errors import DataError
from fuseflow.frontend.data import Data, load_data
from fuseflow.frontend.datasets.graph_data import normalize_adjacency, undirected_adjacency


def adjacency(data: Data) -> sparse.csr_array:
    t = data.adjacency
    return sparse.csr_array((t.values().numpy(), t.col_indices().numpy(), t.crow_indices().numpy()), shape=tuple(t.shape))


def test_karate_is_the_published_graph() -> None:
    data = load_data("karate")
    club = networkx.karate_club_graph()
    found = adjacency(data)
    assert {(i, j) for i, j in zip(*found.nonzero(), strict=True) if i < j} == {tuple(sorted(e)) for e in club.edges}
    assert (data.nodes, data.classes, tuple(data.features.shape)) == (34, 4, (34, 34))
    assert np.bincount(data.labels).tolist() == [13, 12, 4, 5]


def test_adjacency_is_symmetrically_normalized() -> None:
    found = adjacency(load_data("karate")).toarray().astype(np.float64)
    looped = (found != 0).astype(float)
    assert (np.diag(looped) == 1).all()
    scale = 1 / np.sqrt(looped.sum(axis=1))
    np.testing.assert_allclose(found, scale[:, None] * looped * scale[None, :], rtol=1e-6)


def test_first_nodes_are_normalized_as_their_own_graph() -> None:
    whole, part = adjacency(load_data("karate")), load_data("karate:nodes=9")
    edges = sparse.csr_array((whole[:9, :9] != 0).astype(np.float32))
    edges.setdiag(0)
    edges.eliminate_zeros()
    assert (adjacency(part) != normalize_adjacency(edges)).nnz == 0
    assert part.features.shape == (9, 34)
    assert len(part.labels) == part.nodes == 9


def test_random_graph_has_what_was_asked_for() -> None:
    data = load_data("random:nodes=200,degree=6,features=50,density=0.2,classes=3")
    found = adjacency(data)
    assert found.nnz == 200 * 6 + 200
    assert (found != found.T).nnz == 0
    assert data.features.shape == (200, 50)
    assert abs(data.features._nnz() / 10_000 - 0.2) < 0.02
    assert set(data.labels) == {0, 1, 2}


def test_same_seed_same_data() -> None:
    spec = "random:nodes=40,degree=4"
    one, same, other = load_data(spec), load_data(spec + ",seed=0", seed=5), load_data(spec, seed=1)
    assert (adjacency(one) != adjacency(same)).nnz == 0
    assert (one.features.to_dense() == same.features.to_dense()).all()
    assert (adjacency(one) != adjacency(other)).nnz > 0


@given(nodes=st.integers(1, 30), share=st.floats(0, 1), seed=st.integers(0, 3))
def test_random_graphs_of_any_density(nodes: int, share: float, seed: int) -> None:
    degree = round(share * (nodes - 1), 2)
    found = adjacency(load_data(f"random:nodes={nodes},degree={degree},features=3,density=1,seed={seed}"))
    assert found.nnz == nodes + 2 * min(round(nodes * degree / 2), nodes * (nodes - 1) // 2)


@given(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))))
)
def test_undirected_drops_loops_and_duplicates(case: tuple[int, list[tuple[int, int]]]) -> None:
    nodes, pairs = case
    edges = undirected_adjacency(nodes, [a for a, _ in pairs], [b for _, b in pairs]).toarray()
    expected = np.zeros((nodes, nodes))
    for a, b in pairs:
        if a != b:
            expected[a, b] = expected[b, a] = 1
    assert (edges == expected).all()


def test_a_large_graph_stays_sparse() -> None:
    data = load_data("random:nodes=200000,degree=4,features=2,density=0.1")  # dense it would be 160 GB
    assert data.adjacency.shape == (200_000, 200_000)
    assert data.adjacency._nnz() == 1_000_000


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("karat", "unknown data set `karat`\n  hint: did you mean `karate`"),
        ("karate:node=3", "unknown option `node`\n  hint: did you mean `nodes`"),
        ("karate:nodes=35", "the graph has 34 nodes"),
        ("karate:nodes=x", "`nodes=x` is not a number"),
        ("karate:nodes=2.5", "whole number"),
        ("karate:nodes=0", "at least 1"),
        ("karate:nodes", "cannot read the option `nodes`"),
        ("random:nodes=3,nodes=4", "each key once"),
        ("random:degre=4", "unknown option `degre`\n  hint: did you mean `degree`"),
        ("random:density=1.5", "at most 1"),
        ("random:nodes=4,degree=4", "needs more than 4 nodes"),
        ("random:nodes=inf", "at least 1"),
        ("random:degree=nan", "at least 0"),
        ("karate:adj=row", "`adj=row` is none of gcn, raw\n  hint: did you mean `raw`"),
        ("karate:karate", "cannot read the option `karate`"),
        ("synthetic", "a stand-in for which graph?"),
        ("synthetic:colab", "there is no `synthetic:colab`\n  hint: did you mean `collab`"),
        ("synthetic:cora,scale=0.001", "3 nodes are too few for its degrees"),
        ("synthetic:cora,scale=0", "at least 1e-06"),
        ("synthetic:cora,scale=2", "at most 1"),
        ("images:mnist", "there is no `images:mnist`"),
        ("images:nih,adj=raw", "unknown option `adj`"),
        ("images:side=0", "at least 1"),
        ("bigbird:block=10", "has no blocks of 10"),
    ],
)
def test_errors(spec: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load_data(spec)
    assert message in str(caught.value)


def test_the_adjacency_is_an_option() -> None:
    plain, raw, gcn = (load_data(spec) for spec in ("karate", "karate:adj=raw", "karate:nodes=9,adj=gcn"))
    assert (plain.matrix() != normalize_adjacency(plain.edges)).nnz == 0
    assert (plain.matrix(default="raw") != plain.edges).nnz == 0
    assert (raw.matrix() != raw.edges).nnz == 0 and adjacency(raw).nnz == 156
    assert (gcn.matrix(default="raw") != normalize_adjacency(gcn.edges)).nnz == 0
    assert plain.raw.values().tolist() == [1.0] * 156


def test_images() -> None:
    data = load_data("images:side=8,count=3,density=0.25")
    assert data.inputs.shape == (3, 64) and 0.1 < data.inputs.nnz / 192 < 0.4
    assert load_data("images:imagenet").inputs.shape == (5, 224 * 224)
    assert "synthetic" in data.notice and "imagenet" in load_data("images:imagenet").notice
    with pytest.raises(DataError, match="are no graph"):
        _ = data.adjacency
