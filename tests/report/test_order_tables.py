"""The explanation of loop orders: what it says is what the compiler did."""

from __future__ import annotations

import io
from itertools import islice
from pathlib import Path

from rich.console import Console

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.explain.order import explain_order, summarize_loops
from fuseflow.fusion.order_candidates import MAX_CANDIDATES, enumerate_orders
from fuseflow.fusion.order_search import COST_TOLERANCE
from fuseflow.fusion.region_program import order_edges
from fuseflow.report.order_tables import (
    assumed_line,
    candidate_table,
    chosen_because,
    count_table,
    index_table,
    order_json,
    order_lines,
)
from fuseflow.report.table_width import print_table
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

SOFTMAX = """
    tensor A[9, 9] csr
    tensor X[9, 5] dense
    T[i, j] = sum(k) A[i, k] * X[k, j]
    m[i] = max(j) T[i, j]
    E[i, j] = exp(T[i, j] - m[i])
    Y[i, j] = E[i, j] / (sum(l) E[i, l])
    output Y
"""
GCN = (Path(__file__).parents[1] / "data" / "paper" / "gcn.ein").read_text()
DENSE = "tensor A[3, 4, 5, 6, 7]\nY[a, b, c, d, e] = A[a, b, c, d, e] * 2\noutput Y"


def compiled(text: str, schedule: Schedule | None = None) -> Compiled:
    return ff.compile(parse(text), schedule=schedule or Schedule.fuse("full"))


def text_of(program: Compiled, **options) -> str:
    out = io.StringIO()
    console = Console(file=out, width=300)
    for report in explain_order(program, **options):
        for piece in order_lines(report):
            console.print(piece, soft_wrap=True) if isinstance(piece, str) else print_table(console, piece)
    return out.getvalue()


def region_of(text: str, **options):
    return compiled(text, **options).regions[-1].fused


def test_the_text_has_the_graph_with_reasons_and_the_chosen_order():
    program = compiled(SOFTMAX)
    region, shown = program.regions[-1].fused, text_of(program)
    assert f"order {','.join(region.order)}: " in shown
    reasons = [f"{above} before {below}: {why}" for above, below, why in order_edges(region)]
    assert all(reason in shown for reason in reasons) and len(reasons) == 2
    assert any("is stored" in r for r in reasons) and any("must be complete before loop" in r for r in reasons)


def test_compared_orders_are_those_the_compiler_priced():
    region = region_of(SOFTMAX)
    assert [c.order for c in region.compared] == list(enumerate_orders(region.constraints, region.indices))
    chosen = next(c for c in region.compared if c.order == region.order)
    assert chosen.rank <= COST_TOLERANCE * min(c.rank for c in region.compared)
    assert "the nearest" in chosen_because(region) and "to the order of the program" in chosen_because(region)
    assert "all that differ" in chosen_because(region)


def test_costs_are_shown_with_the_cheapest_first():
    program = compiled(SOFTMAX)
    out = io.StringIO()
    print_table(Console(file=out, width=200), candidate_table(program.regions[-1].fused))
    rows = [line.split() for line in out.getvalue().splitlines() if "," in line]
    orders = [row[0] for row in rows if row[0].count(",") == 2]
    ranks = {",".join(c.order): c.rank for c in program.regions[-1].fused.compared}
    assert orders == sorted(orders, key=ranks.__getitem__) and [row[-1] for row in rows].count("chosen") == 1
    assert rows[0][-1] in ("1.00", "chosen")


def test_refused_orders_say_why():
    region = region_of(GCN)
    refused = [c for c in region.compared if c.cost is None]
    assert refused and all(c.order != region.order for c in refused)
    shown = text_of(compiled(GCN))
    assert f"{len(refused)} of them refused" in shown
    assert all(f"refused: {','.join(c.order)} reads " in shown for c in refused)


def test_a_sample_is_called_one():
    region = region_of(DENSE)
    assert 8 < len(region.compared) <= MAX_CANDIDATES and "a sample, and what was reached from its cheapest" in chosen_because(
        region
    )
    assert len(list(islice(enumerate_orders(region.constraints, region.indices), 25))) == 25


def test_a_single_order_is_not_compared():
    program = compiled("tensor A[3, 4] csf\nY[i, j] = A[i, j] * 2\noutput Y")
    shown = text_of(program)
    assert "order i,j: the only legal one" in shown and "compared" not in shown


def test_the_first_of_several_orders_is_not_called_the_only_one():
    product = "tensor A[4, 5] dense\ntensor B[5, 6] dense\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"
    first = ff.compile(parse(product), schedule=Schedule.fuse("full").lower(order_policy="first")).regions[-1].fused
    assert chosen_because(first) == "the first one in the order of storage and of the program; no others were compared"
    asked = ff.compile(parse(product), schedule=Schedule.fuse("full").order("Y", "k,i,j")).regions[-1].fused
    assert chosen_because(asked) == "the only one that the schedule leaves"
    refused = ff.compile(parse(GCN), schedule=Schedule.fuse("full").lower(order_policy="first")).regions[-1].fused
    assert ("after" in chosen_because(refused)) == (len(refused.compared) > 1)


def test_a_scalar_has_no_loops():
    shown = text_of(compiled("tensor a[] dense\ns = a * 2\noutput s"))
    assert "one value: no loops" in shown


def test_a_user_s_order_is_an_edge():
    asked = ",".join(region_of(SOFTMAX).order[::2])  # of three, the outermost and the innermost
    shown = text_of(compiled(SOFTMAX, schedule=Schedule.fuse("full").order("full", asked)))
    assert f"the schedule orders {asked}" in shown


def test_counts_stand_beside_each_other():
    program = compiled(SOFTMAX)
    (report,) = explain_order(program, "reference")
    assert {rule: (c.variables, c.constrained.orders) for rule, c in report.counts.items()} == {
        "reference": (6, 24),  # i -> k -> j four times
        "merged": (3, 1),
        "legal": (3, 2),  # X is dense: j may enclose k
    }
    (merged,) = explain_order(program, "merged")
    assert list(merged.counts) == ["merged", "legal"]
    assert explain_order(program)[0].counts == {}
    out = io.StringIO()
    print_table(Console(file=out, width=200), count_table(report.counts))
    assert "reference" in out.getvalue() and "720" in out.getvalue()


def test_copies_are_regions_without_einsums():
    program = compiled("tensor A[4, 4] csr\nY[i, j] = A[i, j] + A[j, i]\noutput Y")
    copy, region = explain_order(program, "reference")
    assert list(copy.counts) == ["legal"] and region.counts["reference"].constrained.orders == 0
    assert "a copy in another order" in text_of(program)


def test_json_has_whole_numbers():
    program = compiled(SOFTMAX)
    document = order_json(program, explain_order(program, "reference"))
    (region,) = document["regions"]
    assert region["counts"]["reference"] == {"variables": 6, "unconstrained": 720, "constrained": 24, "exact": True}
    assert document["without_data"] == ["A", "X"]
    assert {"order", "cost", "refused"} == region["compared"][0].keys()
    assert region["constraints"][0].keys() == {"above", "below", "why"}
    assert all(isinstance(n, int) for c in region["compared"] for n in (c["cost"] or {}).values())


def test_what_is_assumed_is_said():
    program = compiled(SOFTMAX)
    assert assumed_line(program) == "no data for A, X: compressed levels are taken to hold 10% of their coordinates"


def test_indices_in_brackets_are_not_markup():
    out = io.StringIO()
    print_table(Console(file=out, width=200), index_table(region_of("tensor A[3] csf\nY[bold] = A[bold] * 2\noutput Y")))
    assert "A[bold]" in out.getvalue()


def test_blocks_stand_beside_sizes():
    program = compiled(SOFTMAX, Schedule.fuse("none").block("A", 4, 4))
    reports = explain_order(program, "reference")
    table = {loop.index: (loop.size, loop.block) for loop in summarize_loops(reports[0].region.fused)}
    assert table == {"i": (9, 4), "k": (9, 4), "j": (5, 1)}
    assert "loop  size  in blocks of  kept by" in text_of(program)
    assert "in blocks of" not in text_of(compiled(SOFTMAX))
    found = order_json(program, reports)["regions"][0]["loops"]
    assert {loop["index"]: loop["block"] for loop in found} == {"i": 4, "k": 4, "j": 1}
    plain = explain_order(compiled(SOFTMAX, Schedule.fuse("none")), "reference")
    assert [r.counts for r in reports] == [r.counts for r in plain]
