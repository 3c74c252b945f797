"""The table and the lines about a sampled run. Numbers with `~` are not exact, and each has its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from fuseflow.report.tables import CONFIG_COLUMNS, config_numbers, outcome_line, plain_table, region_label

if TYPE_CHECKING:
    from fuseflow.run.sampled_result import SampledRegionResult, SampledResult


def sampled_table(result: SampledResult) -> Table:
    """Return a table with a row for each region, and the totals. Regions that run alike share one row, with the numbers of one."""
    config = CONFIG_COLUMNS if result.config.bytes else ()
    columns = ("cycles", "sampled", "replicates", "firings", "FLOPs", "bytes\nread", "bytes\nwritten", *config)
    table = plain_table("region", *columns, numbers_from=1, footer=True)
    for region in result.regions:
        name = region_label(region.name, region.repeats)
        table.add_row(escape(name), *_cells(region, config))
    mark = "" if result.counted else "~"
    moved = (result.bytes("read"), result.bytes("write"))
    counts = (result.firings, result.flops, *moved, *config_numbers(result.config, config))
    cells = ("total", str(result.cycles), "", "", *(f"{mark}{n:,}" for n in counts))
    for column, cell in zip(table.columns, cells, strict=True):
        column.footer = cell
    return table


def _cells(region: SampledRegionResult, config: Sequence[str]) -> tuple[str, ...]:
    counts, sample = region.counts, region.sample
    mark = "" if counts.work.exact else "~"
    moved = (counts.bytes("read"), counts.bytes("write"))
    numbers = (counts.firings, counts.flops, *moved, *config_numbers(counts.config, config))
    cycles = f"{region.cycles:,}" if isinstance(region.cycles, int) else str(region.cycles)
    taken = "all, exactly" if sample is None else f"{sample.taken:,} of {sample.coordinates:,} {region.index}"
    replicates = "" if sample is None else str(sample.replicates)
    return (cycles, taken, replicates, *(f"{mark}{n:,.0f}" for n in numbers))


def sampled_lines(result: SampledResult) -> tuple[str, ...]:
    """Return the meaning of the interval, and the outcomes of the checks, one line each."""
    cycles = result.cycles
    meaning = (
        f"cycles with ~ are sampled ({result.sample.text}, seed {result.sample.seed}): the true number is in the interval with "
        f"{100 * cycles.confidence:g} % confidence, here {100 * cycles.error:.2g} % of it; the other numbers are "
        + ("counted" if result.counted else "counted, or expected where they have a ~")
    )
    checked = "check: switched off" if result.check is None else outcome_line(result.check)
    return meaning, checked, outcome_line(result.rows_check)
