"""The explanation of which Einsums are fused and why, as tables and as JSON."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from fuseflow.explain.fusion import FusionDecision, FusionReport, Producer
from fuseflow.explain.keeps import KeptResult
from fuseflow.report.tables import plain_table

SCHEMA = 1


def pair_table(report: FusionReport) -> Table:
    """Return a table with a row for each pair of neighbouring Einsums."""
    table = plain_table("producer", "consumer", "fused", "why", numbers_from=4)
    for pair in report.decisions:
        fused = "[green]yes[/]" if pair.fused else "no"
        table.add_row(escape(pair.producer), escape(pair.consumer), fused, escape(_why(pair)))
    return table


def _why(pair: FusionDecision) -> str:
    if pair.fused:
        return pair.why
    if pair.refusal == pair.why:
        return pair.why
    return f"{pair.why}; " + (f"they cannot be fused: {pair.refusal}" if pair.refusal else "they can be fused")


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
        "schema": SCHEMA,
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
        "keeps": [_keep_json(row) for row in report.keeps],
        "stages": [{"region": row.region, "name": row.name, "loops": list(row.loops)} for row in report.stages],
    }


def _keep_json(row: KeptResult) -> dict[str, Any]:
    return {
        "name": row.name,
        "region": row.region,
        "rule": row.rule,
        "kind": row.kind,
        "why": row.why,
        "places": row.places,
        "held": row.held,
        "bytes_read": round(row.read),
        "bytes_written": round(row.written),
    }


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
