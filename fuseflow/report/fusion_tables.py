"""The explanation of which Einsums are fused and why, and of what public primitives cost, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.cut.recompute_prices import Price
from fuseflow.explain.fusion import FusionReport, Producer
from fuseflow.explain.public_form_cost import PrimitivesCost
from fuseflow.report.tables import plain_table


def pair_table(report: FusionReport) -> Table:
    """Return a table with a row for each pair of neighbouring Einsums."""
    table = plain_table("producer", "consumer", "fused", "why", numbers_from=4)
    for pair in report.decisions:
        fused, why = "[green]yes[/]" if pair.fused else "no", pair.why
        if not pair.fused and pair.refusal != pair.why:
            why += f"; they cannot be fused: {pair.refusal}" if pair.refusal else "; they can be fused"
        table.add_row(escape(pair.producer), escape(pair.consumer), fused, escape(why))
    return table


def producer_table(report: FusionReport) -> Table:
    """Return a table with a row for each producer, and one for each place if its region computes it at several places."""
    columns = ("stored\nentries", "bytes\nwritten", "bytes\nread back", "FLOPs\nagain", "firings\nagain")
    table = plain_table("producer", "region", "stored", "inside loops", "times", *columns, numbers_from=4)
    for row in report.producers:
        places = row.instances
        loops = ",".join(places[0].inside) if len(places) == 1 else f"{len(places)} places" if places else ""
        numbers = (row.entries, row.written, row.read, row.extra_flops, row.extra_firings)
        name, region, stored = escape(row.name), escape(row.region), "yes" if row.stored else "no"
        table.add_row(name, region, stored, loops, _times(row.times), *(f"{n:,.0f}" for n in numbers))
        for place in places if len(places) > 1 else ():
            times = _times(place.evaluations / row.once if row.once else None)
            table.add_row(f"  {escape(place.view)}", "", "", ",".join(place.inside), times, *[""] * len(numbers))
    return table


def stage_table(report: FusionReport) -> Table:
    """Return a table with a row for each stage, which may have other lanes than the rest of its region."""
    table = plain_table("region", "stage", "loops", numbers_from=3)
    region = ""
    for row in report.stages:
        table.add_row("" if row.region == region else escape(row.region), escape(row.name), ",".join(row.loops))
        region = row.region
    return table


def recompute_table(report: FusionReport) -> Table:
    """Return a table with two rows for each Einsum that later regions could compute again: the price of that, and that of storing it."""
    columns = ("cycles", "bytes", "live\nbytes")
    table = plain_table("read later", "in", "price if", "chosen", *columns, numbers_from=4)
    for row in report.recomputes:
        label = escape(row.name), escape(", ".join(row.regions))
        for way, price, chosen in (("stored", row.stored, not row.chosen), ("computed again", row.again, row.chosen)):
            numbers = ["", "", ""] if price is None else [f"{n:,.0f}" for n in (price.cycles, price.bytes, price.live_bytes)]
            table.add_row(*label, way, "yes" if chosen else "", *numbers)
            label = "", ""
    return table


def recompute_notes(report: FusionReport) -> list[str]:
    """Return which of the Einsums that later regions read have no price, and why."""
    refused = [f"{row.name}: {row.refusal}" for row in report.recomputes if row.refusal]
    return [*refused, *([f"{report.unpriced} more results that later regions read are not priced"] if report.unpriced else [])]


def keep_table(report: FusionReport) -> Table:
    """Return a table with a row for each result that is kept in part only."""
    columns = ("held\nat most", "bytes\nread", "bytes\nwritten")
    table = plain_table("kept", "region", "rule", "kind", "why", *columns, numbers_from=5)
    for row in report.keeps:
        numbers = (f"{n:,.0f}" for n in (row.held, row.read, row.written))
        kind = row.kind if row.places == 1 else f"{row.kind}, {row.places} places"
        table.add_row(escape(row.name), escape(row.region), escape(row.rule), kind, escape(row.why), *numbers)
    return table


def _times(times: float | None) -> str:
    return "" if times is None else f"{times:.2f}"


def fusion_json(report: FusionReport, model: str, schedule: str) -> dict[str, Any]:
    """Return the report as plain values (schema 1)."""
    return {
        "schema": 1,
        "model": model,
        "schedule": schedule,
        "pairs": [
            {
                "producer": pair.producer,
                "consumer": pair.consumer,
                "fused": pair.fused,
                "regions": list(pair.regions),
                "why": pair.why,
                "can_fuse": None if pair.fused else not pair.refusal,
                "refusal": pair.refusal,
            }
            for pair in report.decisions
        ],
        "producers": [_producer_json(row) for row in report.producers],
        "keeps": [
            {
                **{key: getattr(row, key) for key in ("name", "region", "rule", "kind", "why", "places", "held")},
                "bytes_read": round(row.read),
                "bytes_written": round(row.written),
            }
            for row in report.keeps
        ],
        "stages": [asdict(row) for row in report.stages],
        "recompute": [
            {
                "name": row.name,
                "regions": list(row.regions),
                "chosen": row.chosen,
                "refusal": row.refusal,
                "stored": _price_json(row.stored),
                "again": _price_json(row.again),
            }
            for row in report.recomputes
        ],
        "recompute_unpriced": report.unpriced,
    }


def _price_json(price: Price | None) -> dict[str, int] | None:
    return None if price is None else {name: round(number) for name, number in asdict(price).items()}


def _producer_json(row: Producer) -> dict[str, Any]:
    return {
        "name": row.name,
        "region": row.region,
        "stored": row.stored,
        "times": _rounded(row.times),
        "instances": [
            {
                "view": place.view,
                "node": place.node,
                "inside": list(place.inside),
                "evaluations": _rounded(place.evaluations),
                "times": _rounded(place.evaluations / row.once if row.once else None),
            }
            for place in row.instances
        ],
        "alone": {"evaluations": _rounded(row.once), "flops": round(row.flops), "firings": round(row.firings)},
        "again": {"flops": round(row.extra_flops), "firings": round(row.extra_firings)},
        "materialized": {"entries": round(row.entries), "bytes_written": round(row.written), "bytes_read": round(row.read)},
    }


def _rounded(number: float | None) -> float | None:
    """Return an estimate with four decimal places, so that equal runs print the same."""
    return None if number is None else round(number, 4)


def primitives_table(costs: Sequence[PrimitivesCost]) -> Table:
    """Return a table of the costs of public primitives, with a row for each region, and for each reason why a region has no public form."""
    table = plain_table("region", "cycles in\nour primitives", "in public\nprimitives", "more", numbers_from=1)
    for cost in costs:
        name, own = escape(cost.region), f"{cost.own:,.0f}"
        if cost.public is not None:
            more = (cost.public - cost.own) / cost.own if cost.own else 0.0
            table.add_row(name, own, f"{cost.public:,.0f}", f"{more:+.1%}")
        else:
            table.add_row(name, own, "", "")
    return table


def primitives_json(costs: Sequence[PrimitivesCost]) -> list[dict[str, Any]]:
    """Return the costs as plain values."""
    return [
        {**asdict(cost), "own": round(cost.own), "public": None if cost.public is None else round(cost.public)} for cost in costs
    ]
