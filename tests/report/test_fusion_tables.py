"""The tables and the JSON of what is fused: nothing is cut, and both say the same."""

from __future__ import annotations

import io
import json

from rich.console import Console
from rich.table import Table

from fuseflow.explain.fusion import FusionDecision, FusionReport, Instance, Producer
from fuseflow.filesystem import json_text
from fuseflow.report.fusion_tables import fusion_json, pair_table, producer_table
from fuseflow.report.table_width import print_table

ONE = Instance("T[i, j]", "mul", ("k",), 60.0)
OTHER = Instance("T[j, i]", "mul'2", (), 20.0)
TWICE = Producer("T", "full", False, (ONE, OTHER), 20.0, 40.0, 90.0, 120.0, 270.0, 16.0, 64.0, 1280.0)
NAME = Producer("R", "full", True, (), 0.0, 0.0, 5.0, 0.0, 0.0, 16.0, 64.0, 64.0)
REPORT = FusionReport(
    (
        FusionDecision("T", "R", ("full", "full"), "`full` fuses what no reshape parts"),
        FusionDecision("R", "Y", ("full", "Y"), "a rule", "`H` reshapes its data"),
        FusionDecision("R", "Z", ("full", "Z"), "a rule"),
        FusionDecision("R", "H", ("full", "H"), "`H` reshapes its data", "`H` reshapes its data"),
    ),
    (TWICE, NAME),
)


def lines(table: Table) -> list[str]:
    out = io.StringIO()
    print_table(Console(file=out, width=160), table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_pairs_say_what_could_be():
    assert lines(pair_table(REPORT))[2:] == [
        "T R yes `full` fuses what no reshape parts",
        "R Y no a rule; they cannot be fused: `H` reshapes its data",
        "R Z no a rule; they can be fused",
        "R H no `H` reshapes its data",
    ]


def test_every_place_of_a_producer_is_a_row():
    assert lines(producer_table(REPORT))[3:] == [
        "T full no 2 places 4.00 16 64 1,280 120 270",
        "T[i, j] k 3.00",
        "T[j, i] 1.00",
        "R full yes 16 64 64 0 0",
    ]


def test_json():
    found = json.loads(json_text(fusion_json(REPORT, "model", "fuse: [full]\n")))
    assert (found["schema"], found["model"], found["schedule"]) == (1, "model", "fuse: [full]\n")
    assert [pair["can_fuse"] for pair in found["pairs"]] == [None, False, True, False]
    twice, name = found["producers"]
    assert twice["times"] == 4 and [place["times"] for place in twice["instances"]] == [3, 1]
    assert twice["instances"][0] == {"view": "T[i, j]", "node": "mul", "inside": ["k"], "evaluations": 60, "times": 3}
    assert twice["materialized"] == {"entries": 16, "bytes_written": 64, "bytes_read": 1280}
    assert twice["again"] == {"flops": 120, "firings": 270}
    assert name["times"] is None and name["instances"] == []
