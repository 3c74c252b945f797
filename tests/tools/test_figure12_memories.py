"""Figure 12 on five memories: the order of the points, what counts as the fastest, and the page, which shows the committed rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import figure12_memories as study
from store import ROOT, ROWS, load

import evaluation
import fuseflow as ff

GCN = evaluation.Point("gcn", "cora", "synthetic:cora", "full", "ddr5-4800")


def row(low: int, high: int | None = None, point: evaluation.Point = GCN, state: str = "done") -> evaluation.Row:
    ask = study.ask_of(point.machine)
    given: dict[str, Any] = {"kind": "exact", "exact_cycles": low}
    if high is not None:
        given = {
            "kind": "sampled",
            "sampled_cycles": {"estimate": (low + high) // 2, "low": low, "high": high, "confidence": 0.95},
        }
    return evaluation.Row(evaluation.row_key(point, ask), evaluation.asdict(point), {}, state, 5.0, 6.0, 700, **given)


def test_all_points_on_all_memories_the_cheapest_first() -> None:
    asked = study.in_order(None)
    assert len({point.key for point in asked}) == len(asked) == 5 * 48
    assert [point.machine for point in asked[:5]] == list(study.MEMORIES)
    assert {point.model for point in asked[:15]} == {"sae"} and {point.model for point in asked[-15:]} == {"gpt"}


def test_the_fastest_is_so_also_at_the_worst_ends_of_the_intervals() -> None:
    assert study.fastest({"unfused": row(100), "partial": row(80, 90), "full": row(91)}) == "partial"
    assert study.fastest({"unfused": row(100), "partial": row(80, 95), "full": row(91)}) is None
    assert study.fastest({"unfused": row(100)}) is None


def test_what_was_not_run_is_said_and_nothing_is_fastest_beside_it() -> None:
    assert study.cell({}) == study.cell({"full": row(7)}) == "not run"
    assert study.cell({"unfused": row(100), "partial": row(80)}) == "partial 1.25, full not run"
    assert study.cell({"unfused": row(100), "partial": row(80), "full": row(200)}) == "**partial 1.25**, full 0.50"
    assert study.cell({"unfused": row(100), "partial": row(70, 90)}) == "partial ~1.25, full not run"
    assert study.cell({"unfused": row(100), "partial": row(125), "full": row(200)}) == "**unfused**, partial 0.80, full 0.50"


def test_hbm2_is_the_memory_of_rda_and_of_no_other_data() -> None:
    asked = [replace(GCN, machine=machine, workload="dblp", data="synthetic:dblp") for machine in ("hbm2", "ddr5-4800")]
    assert list(study.measured(asked, {})) == [("gcn/dblp", "hbm2", "full")]
    assert not study.measured([replace(GCN, machine="hbm2")], {})  # the committed row is of the published graph
    failed = row(7, point=GCN, state="limit")
    assert not study.measured([GCN], {failed.key: failed})


def test_only_what_was_not_run_is_estimated() -> None:
    expected = {
        each: dict.fromkeys(study.MEMORIES, cycles) for each, cycles in (("unfused", 100), ("partial", 50), ("full", 400))
    }
    done = {("gcn/cora", memory, each): row(7) for memory in study.MEMORIES for each in expected}
    assert study.estimated_cell("gcn/cora", done, expected) == study.estimated_cell("gcn/cora", {}, {}) == ""
    del done["gcn/cora", "ddr5-4800", "full"]
    assert study.estimated_cell("gcn/cora", done, expected) == "on 1: partial 2.00, full 0.25"
    expected["full"]["ddr5-4800"] = 40
    assert study.estimated_cell("gcn/cora", {}, expected) == "on 5: partial 2.00, full 0.25 to 2.50"


def test_the_summary_says_what_is_fastest_and_where_that_is_open() -> None:
    done = {("gcn/cora", "hbm2", "unfused"): row(100), ("gcn/cora", "hbm2", "partial"): row(90, 101)}
    done |= {("sae/nih", "hbm2", each): row(cycles) for each, cycles in (("unfused", 3), ("partial", 2), ("full", 1))}
    assert study.summary(done).splitlines() == [
        "unfused, partial: 2 run, fastest none for sure 1, partial 1",
        "unfused, partial, full: 1 run, fastest full 1",
    ]


def test_an_estimate_on_another_memory_is_that_of_the_program_compiled_for_it() -> None:
    point = evaluation.Point("sae", "imagenet", "images:side=6", "full", "rda")
    schedule = ff.Schedule.load(ROOT / "schedules" / "sae_full.yaml")
    for memory, cycles in study.estimate(point, None)["cycles"].items():
        program = ff.compile(ROOT / "models" / "paper" / "sae.py", schedule=schedule, data=point.data, machine=memory)
        assert cycles == round(program.estimate().cycles)


def test_the_page_shows_the_committed_rows() -> None:
    rows = load(ROWS / f"{study.STORE_NAME}.jsonl", evaluation.Row)
    assert all(check["passed"] for r in rows.values() if r.state == "done" for check in r.checks.values())
    asked = study.in_order(None)
    found = study.measured(asked, rows)
    text = (ROOT / "docs" / "measured" / "memories.md").read_text()
    assert study.table(asked, found) in text and study.summary(found) in text, "python evaluation/figure12_memories.py --table"
