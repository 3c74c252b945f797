"""The rows of `model_runs.py` as docs/measured/models.md shows them: a line for each model and data, granularities side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from claims import markdown

NAMES = {"gcn": "GCN", "graphsage": "GraphSAGE", "sae": "SAE", "gpt": "GPT-3 small"}


def named_options(point: Mapping[str, Any]) -> tuple[str, ...]:
    """The options and formats of a point. Rows from before there were formats have none."""
    return (*point["options"], *point.get("formats", ()))


def summary(rows: Iterable[Any], granularities: Sequence[str], published: Mapping[str, tuple[int, ...]]) -> str:
    """Markdown. Speeds are over the unfused run; `error` is the largest of the outputs, `seconds` the sum, `peak MB` the most. Points that
    are not done are empty. `rows` stand in the order of the table."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row.state == "done":
            point = row.point
            key = point["machine"], point["model"], point["data"], point["workload"], *named_options(point)
            groups.setdefault(key, {})[point["granularity"]] = row
    fused = granularities[1:]
    heads = [*granularities, *(f"speed, {g}" for g in fused), *(f"published, {g}" for g in fused), "error", "seconds", "peak MB"]
    lines = []
    for (_, model, data, workload, *options), found in groups.items():
        stored = published.get(f"{model}/{workload}") if not options else None
        of = found.values()
        speeds = [_speed(found, granularities[0], g) for g in fused]
        theirs = [f"{stored[0] / cycles:.2f}" for cycles in stored[1:]] if stored else [""] * len(fused)
        cells = [
            NAMES.get(model, model),
            f"`{data}`" + "".join(f" {option}" for option in options) + _label(data, of),
            *(f"{found[g].cycles:,}" if g in found else "" for g in granularities),
            *speeds,
            *theirs,
            f"{max(row.check['max_rel_error'] for row in of):.0e}",
            f"{sum(row.seconds for row in of):,.0f}",
            f"{max(row.peak_mb for row in of):,}",
        ]
        lines.append(cells)
    return markdown(["model", "data", *heads], lines, 2)


def _label(data: str, rows: Iterable[Any]) -> str:
    """What is generated says so, if its name does not."""
    return " (synthetic)" if any(row.notices for row in rows) and not data.startswith("synthetic") else ""


def _speed(found: Mapping[str, Any], base: str, granularity: str) -> str:
    return f"{found[base].cycles / found[granularity].cycles:.2f}" if base in found and granularity in found else ""
