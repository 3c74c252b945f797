"""What limits a region is said in one way: by its critical path, or else by its busiest node and its memory."""

from __future__ import annotations

from typing import Any

import pytest

from fuseflow.report.page.catalog import region_limit


def region(cycles: int, compute: int, memory: int) -> dict[str, Any]:
    nodes = [{"name": "a", "op": "scan", "occupied": 10}, {"name": "b", "op": "alu", "occupied": compute}]
    roof = {"compute": compute, "memory": memory, "bound": max(compute, memory)}
    return {"cycles": cycles, "roofline": roof, "statistics": {"nodes": nodes}}


@pytest.mark.parametrize(
    ("cycles", "compute", "memory", "words", "node"),
    [(100, 90, 20, "b, work", "b"), (100, 30, 95, "bandwidth", None), (100, 40, 20, "waits", None)],
)
def test_without_a_critical_path(cycles: int, compute: int, memory: int, words: str, node: str | None):
    limit = region_limit(region(cycles, compute, memory), None)
    assert limit is not None and (limit.words, limit.node) == (words, node) and limit.sentence.startswith("limited by ")


def test_a_critical_path_says_it():
    path = [{"node": "x", "cycles": 30}, {"node": "y", "cycles": 40}, {"node": "x", "cycles": 20}]
    explained = {"bottleneck": "limited by the work of `y`", "limits": "y", "limit_kind": "work", "path": path}
    limit = region_limit(region(100, 90, 20), explained)
    assert limit is not None and (limit.sentence, limit.words, limit.node) == ("limited by the work of `y`", "y, work", "y")
    earlier = region_limit(region(100, 90, 20), {"bottleneck": "56 % of it is ...", "path": path})
    assert earlier is not None and earlier.node == "x"


def test_a_region_without_nodes_has_no_limit():
    assert region_limit({**region(0, 0, 0), "statistics": {"nodes": []}}, None) is None
