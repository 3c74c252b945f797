"""The comparison of two runs: no region, no node and no cycle is lost, whatever is fused and on how many lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.report.page.comparison import comparison_page
from fuseflow.report.page.run_directory import StoredRun, read_run
from fuseflow.report.page.run_pairs import node_pairs, region_pairs
from fuseflow.schedule import Schedule

EXAMPLE = Path(__file__).parents[3] / "docs" / "example"
SCHEDULES = {"none": Schedule.fuse("none"), "full": Schedule.fuse("full"), "lanes": Schedule.fuse("full").par(i=2)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StoredRun]:
    stored = {}
    for name, schedule in SCHEDULES.items():
        folder = tmp_path_factory.mktemp(name) / "run"
        compiled = ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml", schedule=schedule)
        compiled.save(folder, compiled.run(check=False))
        stored[name] = read_run(folder)
    return stored


@pytest.mark.parametrize("names", [("none", "full"), ("full", "none"), ("full", "lanes"), ("lanes", "none"), ("full", "full")])
def test_nothing_is_lost(names: tuple[str, str], runs: dict[str, StoredRun]):
    before, after = (runs[name] for name in names)
    pairs = region_pairs(before, after)
    for stored, side in ((before, 0), (after, 1)):
        regions = [region["name"] for pair in pairs for region in (pair.before, pair.after)[side]]
        assert sorted(regions) == sorted(region["name"] for region in stored.result["regions"])
        assert sum(pair.cycles[side] for pair in pairs) == stored.result["cycles"]
        nodes = [
            node for pair in pairs for both in node_pairs(pair, before, after) for node in (both.before, both.after)[side].names
        ]
        expected = [(r["name"], n["name"]) for r in stored.result["regions"] for n in r["statistics"]["nodes"]]
        assert sorted(nodes) == sorted(expected)


def test_a_run_is_like_itself(runs: dict[str, StoredRun]):
    for pair in region_pairs(runs["full"], runs["full"]):
        assert all(node.change == 0 and node.before == node.after for node in node_pairs(pair, runs["full"], runs["full"]))
    assert "Nothing: the same model" in comparison_page(runs["full"], runs["full"], ("A", "B"))


def test_lanes_stand_in_the_row_of_the_node_that_they_divide(runs: dict[str, StoredRun]):
    (pair,) = region_pairs(runs["full"], runs["lanes"])
    divided = [
        node for node in node_pairs(pair, runs["full"], runs["lanes"]) if len(node.after.names) == 2 * len(node.before.names) > 0
    ]
    assert len(divided) > 5 and any(node.change < 0 for node in divided)
