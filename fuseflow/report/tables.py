"""The tables and lines about a compiled program or a run, whole or sampled, that commands print on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rich import box
from rich.align import VerticalAlignMethod
from rich.markup import escape
from rich.table import Table

from fuseflow.lower.lanes import without_lanes
from fuseflow.ops import OPERATORS, REDUCERS, Operator
from fuseflow.report.quantities import bytes_text

if TYPE_CHECKING:
    from pathlib import Path

    from fuseflow.run.check import Check
    from fuseflow.run.compiled import Compiled
    from fuseflow.run.result import Result
    from fuseflow.run.sampled_result import SampledRegionResult, SampledResult
    from fuseflow.samml.nodes import Edge
    from fuseflow.sim.configuration_load import ConfigurationLoad
    from fuseflow.sim.outcome.statistics import NodeStatistics
    from fuseflow.sim.signature import RegionRepeat


def plain_table(*columns: str, numbers_from: int, footer: bool = False) -> Table:
    """Return an empty table whose columns from `numbers_from` on hold numbers. With `footer`, it has a last row of totals."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, show_footer=footer)
    vertical: VerticalAlignMethod = "bottom" if any("\n" in column for column in columns) else "top"
    for n, column in enumerate(columns):
        table.add_column(column, justify="right" if n >= numbers_from else "left", no_wrap=True, vertical=vertical)
    return table


def operators_json() -> dict[str, Any]:
    """Return the operators and reductions as plain values (schema 1)."""
    operators = [
        {"name": row.name, "operands": row.arity, "symbol": row.symbol, "unit": row.unit, "flops": row.flops}
        for row in OPERATORS.values()
    ]
    reductions = [{"name": row.name, "identity": f"{row.identity:g}", "unit": row.unit} for row in REDUCERS.values()]
    return {"schema": 1, "operators": operators, "reductions": reductions}


def add_footer(table: Table, *cells: str) -> None:
    """Put a cell below each column of a table."""
    for column, cell in zip(table.columns, cells, strict=True):
        column.footer = cell


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape as text, such as `2 x 3`."""
    return " x ".join(map(str, shape))


def operator_table() -> Table:
    """Return a table of the pointwise operators: notation, annihilators, value at zeros and cost of each."""
    table = plain_table("operator", "written", "annihilators", "at zero", "unit", "FLOPs", numbers_from=5)
    for row in OPERATORS.values():
        fixed = (f"{_written(row, at, value)} = {result:g}" for at, value, result in row.annihilators)
        zero = row.scalar(*[0.0] * row.arity) + 0.0  # no -0
        table.add_row(row.name, _written(row), "\n".join(fixed), f"{zero:g}", row.unit, str(row.flops))
    return table


def _written(row: Operator, position: int | None = None, value: float = 0) -> str:
    """Return the operator as programs write it: `a * b`, or `0 * _` with the operand at `position` fixed to `value`."""
    operands = (
        list("abc"[: row.arity]) if position is None else [f"{value:g}" if n == position else "_" for n in range(row.arity)]
    )
    return f" {row.symbol} ".join(operands) if row.symbol else f"{row.name}({', '.join(operands)})"


def reducer_table() -> Table:
    table = plain_table("reduction", "written", "identity", "unit", numbers_from=4)
    for row in REDUCERS.values():
        table.add_row(row.name, f"{row.name}(k) ...", f"{row.identity:g}", row.unit)
    return table


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check of the installation and its outcome."""

    name: str
    passed: bool
    outcome: str


def check_table(rows: Iterable[CheckRow]) -> Table:
    table = plain_table("check", "", "found", numbers_from=3)
    for row in rows:
        table.add_row(row.name, "[green]ok[/]" if row.passed else "[red]wrong[/]", escape(row.outcome))
    return table


def compiled_table(compiled: Compiled) -> Table:
    """Return a table of the regions: loop order, size, and expected cost of each."""
    table = plain_table("region", "order", "Einsums", "nodes", "roofline", "estimated\nFLOPs", "estimated\nbytes", numbers_from=2)
    for region in compiled.regions:
        cost = region.estimate
        numbers = (len(region.einsums), region.graph.node_count, cost.cycles, cost.flops, cost.bytes)
        table.add_row(escape(region.name), ",".join(region.fused.order), *(f"{n:,.0f}" for n in numbers))
    return table


def compiled_json(compiled: Compiled, target: Path | None) -> dict[str, Any]:
    """Return the table of the regions as plain values (schema 1), with the file or directory that was written."""
    regions = [
        {
            "name": region.name,
            "order": list(region.fused.order),
            "einsums": list(region.einsums),
            "nodes": region.graph.node_count,
            "roofline": region.estimate.cycles,
            "flops": region.estimate.flops,
            "bytes": region.estimate.bytes,
        }
        for region in compiled.regions
    ]
    written = None if target is None else str(target)
    schedule = compiled.schedule.to_yaml()
    return {"schema": 1, "model": compiled.name, "schedule": schedule, "written": written, "regions": regions}


def result_table(result: Result) -> Table:
    """Return a table with a row for each region, and the totals. Regions that run alike share one row, with the numbers of one.
    Loads of configurations are shown if there are any, and those of regions on an array: of a row, the one before its first run."""
    config, loading = CONFIG_COLUMNS if result.config.bytes else (), LOADING_COLUMNS if result.loading else ()
    columns = (
        *("Einsums", "cycles", "roofline", "nodes", "firings", "tokens", "FLOPs", "bytes\nread", "bytes\nwritten"),
        *config,
        *loading,
    )
    table = plain_table("region", *columns, numbers_from=1, footer=True)
    rows = []
    for region in result.regions:
        run = region.simulation
        moved = run.bytes("read"), run.bytes("write")
        counts = (len(region.einsums), run.cycles, run.bound, run.node_count, run.firings, run.tokens, run.flops, *moved)
        load = result.loading.get(region.name, 0)
        rows.append(counts + config_numbers(region.config, config) + ((load, load + run.cycles) if loading else ()))
    for region, row in zip(result.regions, rows, strict=True):
        table.add_row(escape(region_label(region.name, region.repeats)), *(f"{n:,}" for n in row))
    totals = [sum(region.times * row[k] for region, row in zip(result.regions, rows, strict=True)) for k in range(len(columns))]
    totals[-2:] = [result.loading_cycles, result.cycles + result.loading_cycles] if loading else totals[-2:]
    add_footer(table, "total", *(f"{n:,}" for n in totals))
    return table


def live_line(live_bytes: float) -> str:
    """Return a line that says how many bytes of intermediates are stored at the same time."""
    return f"at most {bytes_text(live_bytes)} of intermediates are stored at a time"


def region_label(name: str, repeats: Sequence[RegionRepeat]) -> str:
    """Return the label of a row for a region and the regions that run like it."""
    return names_label([name, *(repeat.name for repeat in repeats)])


def names_label(names: Sequence[str]) -> str:
    """Return the label of a row for regions that run alike: all names, so that no number seems to be missing, or, where that is
    too long, the first, the last, and how many there are.

    >>> names_label(["full-2", "full-4"]), names_label([f"full-{n}" for n in range(2, 26, 2)])
    ('full-2, full-4', 'full-2 .. full-24 x12')
    """
    listed = ", ".join(names)
    return listed if len(names) == 1 or len(listed) <= _MOST_LISTED else f"{names[0]} .. {names[-1]} x{len(names)}"


_MOST_LISTED = 32
"""The most characters of a list of names in the label of a row."""

CONFIG_COLUMNS = ("config\nbytes", "config\ncycles")
"""The columns about loads of configurations, in tables of runs and of estimates."""

LOADING_COLUMNS = ("loading\ncycles", "cycles with\nloading")
"""The columns about the loading of regions on an array, in tables of runs."""


def config_numbers(load: ConfigurationLoad, columns: Sequence[str]) -> tuple[int, ...]:
    """Return the bytes and cycles of a load for `columns`, which are `CONFIG_COLUMNS`; () if there are no columns."""
    return (load.bytes, load.cycles) if columns else ()


def top_tables(result: Result, count: int) -> tuple[Table, Table]:
    """Return a table of the `count` busiest nodes of each region, and a table of its most blocked nodes, in percent of its cycles."""
    blocked = attrgetter("blocked")
    return _top_table(result, count, "busiest node", working_cycles), _top_table(result, count, "most blocked node", blocked)


def working_cycles(node: NodeStatistics) -> float:
    """Return the cycles in which a node fires, or works on a tile that it took before. Of two processes, the busier one counts."""
    return max(node.busy / node.processes, node.occupied)


def cycle_shares(node: NodeStatistics, cycles: int) -> Iterator[str]:
    """Yield the percent of the cycles in which a node was busy, starved, waiting for memory and blocked. Of two processes, busy
    is the busier one, and the rest is the mean of both, so that no share is above 100."""
    waiting = (part / node.processes for part in (node.starved, node.waited, node.blocked))
    yield from (f"{100 * part / cycles:.1f}" if cycles else "0.0" for part in (working_cycles(node), *waiting))


def _top_table(result: Result, count: int, title: str, cycles: Callable[[NodeStatistics], float]) -> Table:
    """Return a table of the nodes with the most `cycles`. Nodes without any are left out, and equal ones stand in graph order."""
    table = plain_table("region", title, "op", "busy\n%", "starved\n%", "memory\n%", "blocked\n%", numbers_from=3)
    for region in result.regions:
        name = escape(region.name)
        nodes = sorted(filter(cycles, region.simulation.nodes), key=cycles, reverse=True)[:count]
        for node in nodes:
            table.add_row(name, escape(node.name), node.op, *cycle_shares(node, region.cycles))
            name = ""
        if not nodes:
            table.add_row(name, "none")
    return table


def fifo_depth_lines(result: Result) -> Iterator[str]:
    """Yield a line for each region about the FIFOs that a machine of `fifo_depth: auto` deepened. Copies in lanes, and inputs of a `merge`,
    are listed once if they are equally deep."""
    for region in result.regions:
        merges = {node.name for node in region.simulation.nodes if node.op == "merge"}
        groups: dict[tuple[str, int | None, int], list[Edge]] = {}
        for edge, depth in region.simulation.depths.items():
            name = without_lanes(edge.node, region.places.get(edge.node, ()))
            groups.setdefault((name, None if edge.node in merges else edge.input, depth), []).append(edge)
        depths = ", ".join(_deepened(name, depth, edges) for (name, _, depth), edges in groups.items())
        if depths:
            yield escape(f"{region.name}: FIFOs deepened: {depths}")


def _deepened(name: str, depth: int, edges: Sequence[Edge]) -> str:
    inputs, lanes = sorted({edge.input for edge in edges}), len({edge.node for edge in edges})
    which = f"inputs {inputs[0]} to {inputs[-1]}" if len(inputs) > 1 else f"input {inputs[0]}"
    return f"{which} of `{name}` to {depth:,}{f' in {lanes} lanes' if lanes > 1 else ''}"


def lane_lines(result: Result) -> Iterator[str]:
    """Yield a line for each region and index about how evenly its lanes worked."""
    for region in result.regions:
        for index, lanes in region.lanes.items():
            firings = [lane.firings for lane in lanes]
            imbalance = max(firings) * len(firings) / sum(firings) if sum(firings) else 1.0
            spread = f"{min(firings):,} to {max(firings):,} firings each, the most {imbalance:.2f} times the mean"
            yield escape(f"{region.name}: {len(lanes)} lanes of {index}, {spread}")


def sampled_table(result: SampledResult) -> Table:
    """Return a table with a row for each region, and the totals. Regions that run alike share one row, with the numbers of one."""
    config = CONFIG_COLUMNS if result.config.bytes else ()
    columns = ("cycles", "sampled", "replicates", "firings", "FLOPs", "bytes\nread", "bytes\nwritten", *config)
    table = plain_table("region", *columns, numbers_from=1, footer=True)
    for region in result.regions:
        name = region_label(region.name, region.repeats)
        table.add_row(escape(name), *_sampled_cells(region, config))
    mark = "" if result.counted else "~"
    moved = (result.bytes("read"), result.bytes("write"))
    counts = (result.firings, result.flops, *moved, *config_numbers(result.config, config))
    add_footer(table, "total", str(result.cycles), "", "", *(f"{mark}{n:,}" for n in counts))
    return table


def _sampled_cells(region: SampledRegionResult, config: Sequence[str]) -> tuple[str, ...]:
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
        f"cycles with ~ are of a sample ({result.sample.text}, seed {result.sample.seed}): the true number is in the interval with "
        f"{100 * cycles.confidence:g} % confidence (± {100 * cycles.error:.2g} %); the other numbers are "
        + ("counted" if result.counted else "counted, or expected where they have a ~")
    )
    return meaning, check_line(result.check), check_line(result.rows_check)


def check_line(check: Check | None) -> str:
    """Return the outcome of a check in one line. None is a check that was switched off."""
    if check is None:
        return "check: switched off"
    colour = "green" if check.passed else "red"
    return f"check against {check.reference}: [{colour}]{check.verdict}[/], {escape(check.details)}"
