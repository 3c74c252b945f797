"""Names of nodes in a graph: short, and as different as the nodes are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.report.page.graph_drawings import LETTERS, draw_graph, node_labels
from fuseflow.samml.nodes import Graph

GPT = Path(__file__).parents[3] / "models/gpt_bigbird.py"


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    """The graphs of a GPT whose decoders are fused, with names such as `h.0.attn.query.weight.split_val`."""
    compiled = ff.compile(GPT, schedule=ff.Schedule.fuse("full"), options={"small": True})
    return [region.graph for region in compiled.regions]


def test_the_nodes_of_a_transformer_have_names_that_tell_them_apart(graphs: list[Graph]):
    for graph in graphs:
        labels = node_labels([node.name for node in graph.nodes], LETTERS)
        assert len(set(labels.values())) == len(graph.nodes)
        assert max(map(len, labels.values())) <= LETTERS


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["short", "short'2"], ["short", "short'2"]),
        (["layers.0.query_val", "layers.0.key_val"], ["la…ery_val", "la…key_val"]),
        (["decoder.query.weight.dense", "decoder.key.weight.dense"], ["…query.we…", "…key.weig…"]),
        (["first.of.same.ending", "fifth.of.same.ending"], ["fir…ending", "fif…ending"]),
    ],
)
def test_what_differs_is_shown(names: list[str], labels: list[str]):
    assert [*node_labels(names, 10).values()] == labels


def test_a_picture_shows_them(graphs: list[Graph]):
    for graph in graphs:
        picture = draw_graph(graph, {}, {}, 1).picture
        assert picture is not None
        names = re.findall(r'"name":"([^"]*)"', picture)
        assert len(set(names)) == len(names) == len(graph.nodes)
