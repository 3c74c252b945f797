"""`fuseflow.explain`: why a program was compiled as it was, and why it takes its cycles."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, assert_never, get_args

from rich.markup import escape
from rich.table import Table

from fuseflow.array.settings import ArraySettings
from fuseflow.data_frames import data_frame
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.explain.array_cuts import explain_cuts
from fuseflow.explain.cycles import explain_cycles
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.order import CountingRule, explain_order
from fuseflow.explain.plan import explain_plan
from fuseflow.explain.public_form_cost import explain_primitives
from fuseflow.interface.estimates import array_of, compiled_of
from fuseflow.lower.schedule_annotations import overruled_notices
from fuseflow.report.array_tables import cut_lines, cuts_json
from fuseflow.report.cycle_tables import cycles_json, cycles_lines, summary_json, summary_lines
from fuseflow.report.fusion_tables import (
    fusion_json,
    keep_table,
    pair_table,
    primitives_json,
    primitives_table,
    producer_table,
    recompute_notes,
    recompute_table,
    stage_table,
)
from fuseflow.report.order_tables import assumed_line, order_json, order_lines
from fuseflow.report.plan_tables import comparison, part_table, plan_json
from fuseflow.report.sparsity_tables import attribute_table
from fuseflow.report.table_width import ALL_COLUMNS, TableConsole, print_table
from fuseflow.report.training_tables import stored_table
from fuseflow.run.compiled import Compiled
from fuseflow.run.training.phase_costs import stored_for_later
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    import pandas

    from fuseflow.frontend.model_spec import Model, ModelArguments
    from fuseflow.frontend.sources import Source
    from fuseflow.machine.machine import Machine
    from fuseflow.run.callback_types import ProgressCallback
    from fuseflow.sim import Engine

About: TypeAlias = Literal["summary", "cycles", "fusion", "order", "plan"]
"""What is explained: each is a command `fuseflow explain ...`."""
TOP = 5
"""The rows of each table about cycles."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of a compiled program: tables and sentences to be printed, and the same as plain values.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> ff.explain(text, ([[1, 0], [2, 3]], [4, 5]), about="order").to_dict()["regions"][0]["order"]
    ['i', 'k']
    """

    about: About
    """What is explained."""
    values: Mapping[str, Any] = field(repr=False)
    """The explanation as plain values, as `fuseflow explain ... --json` writes them."""
    pieces: tuple[str | Table, ...] = field(repr=False)
    """The lines, with the markup of rich, and the tables that `fuseflow explain ... --wide` prints."""
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The rows of `to_pandas`."""
    notices: tuple[str, ...] = ()
    """What must be told with it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, as `fuseflow explain ... --json` writes them."""
        return dict(self.values)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the main table as a `DataFrame` of pandas: the changes that would help; the steps of the critical paths, in cycles; pairs
        of neighbouring Einsums; the orders that were compared; or the parts of a plan. Raises `UsageError` without pandas."""
        return data_frame(self.rows)

    def __str__(self) -> str:
        console = TableConsole(file=io.StringIO(), width=ALL_COLUMNS, color_system=None, highlight=False, wide=True)
        for piece in self.pieces:
            if isinstance(piece, Table):
                print_table(console, piece)
            else:
                console.print(piece, soft_wrap=True)
        for notice in self.notices:
            console.print(f"note: {notice}", soft_wrap=True, markup=False)
        return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def explanation_of_summary(
    compiled: Compiled, engine: Engine = "auto", progress: ProgressCallback | None = None, no_changes: bool = False
) -> Explanation:
    """Run a program, and say in a few lines what limits it and what would help."""
    report = explain_cycles(compiled, engine, progress, not no_changes)
    values = summary_json(report)
    lines = tuple(escape(line) for line in summary_lines(report))
    return Explanation("summary", values, lines, tuple(values["changes"]), report.result.settings.notices)


def explanation_of_order(compiled: Compiled, count: CountingRule | None = None) -> Explanation:
    """Explain the loop order of every region. With `count`, legal orders are counted by this rule."""
    reports = explain_order(compiled, count)
    assumed = assumed_line(compiled)
    pieces = (*([assumed, ""] if assumed else []), *(piece for report in reports for piece in order_lines(report)))
    values = order_json(compiled, reports)
    rows = tuple(
        {"region": region["name"], "order": ",".join(each["order"]), **(each["cost"] or {}), "refused": each["refused"]}
        for region in values["regions"]
        for each in region["compared"]
    )
    return Explanation(
        "order", values, pieces, rows, tuple(overruled_notices(compiled.source.program, compiled.schedule, compiled.regions))
    )


def explanation_of_fusion(compiled: Compiled, asked: Schedule | None = None, array: ArraySettings | None = None) -> Explanation:
    """Explain the regions of a program, which was compiled for an array if there is one. `asked` is the schedule of the user, before its
    open choices were made."""
    source, schedule = compiled.source, compiled.schedule
    report = explain_fusion(source, schedule, compiled.machine, asked)
    cuts = () if array is None else explain_cuts(compiled, array)
    costs = explain_primitives(compiled)
    trains = source.step is not None
    kept = stored_for_later(compiled.program, compiled.regions) if trains else []
    values = {
        **fusion_json(report, source.name, schedule.to_yaml()),
        "primitives": primitives_json(costs),
        **compiled.settings.left_out_json,
        **({} if array is None else {"cuts": cuts_json(cuts)}),
        **({"stored_for_backward": [asdict(row) for row in kept]} if trains else {}),
    }

    def pieces() -> Iterator[str | Table]:
        yield pair_table(report)
        if cuts:
            yield from ("", *cut_lines(cuts))
        yield from ("", producer_table(report))
        if compiled.settings.left_out:
            yield from ("", attribute_table(compiled.settings.left_out))
        if trains:
            yield from ("", stored_table(kept) if kept else "nothing is stored for the backward")
        if report.recomputes:
            yield from ("", recompute_table(report))
            yield from recompute_notes(report)
        if report.keeps:
            yield from ("", keep_table(report))
        if costs:
            yield from ("", primitives_table(costs))
            yield from (escape(f"{cost.region}: {reason}") for cost in costs for reason in cost.private)
            yield from (escape(f"note: {cost.notice}") for cost in costs if cost.notice)
        yield from ("", stage_table(report))

    return Explanation("fusion", values, tuple(pieces()), tuple(values["pairs"]))


def explanation_of_cycles(
    compiled: Compiled,
    engine: Engine = "auto",
    progress: ProgressCallback | None = None,
    top: int = TOP,
    no_changes: bool = False,
    with_stalls: bool = True,
) -> Explanation:
    """Run a program, and follow the critical path of every region. `with_stalls` runs it once more for the waits of nodes over time, which
    are in the values alone."""
    report = explain_cycles(compiled, engine, progress, not no_changes, with_stalls)
    values = cycles_json(report)
    rows = tuple({"region": region["name"], **step} for region in values["regions"] for step in region["path"])
    return Explanation("cycles", values, tuple(cycles_lines(report, top)), rows, report.result.settings.notices)


def explanation_of_plan(source: Source, schedule: Schedule, machine: Machine, simulate: bool = False) -> Explanation:
    """Explain the plan of a schedule for a source whose operands are not divided yet. `simulate` also runs it with the plan and without."""
    report = explain_plan(source, schedule, machine, simulate)
    values = plan_json(report, source.name, schedule.to_yaml())
    return Explanation("plan", values, (part_table(report), "", comparison(report)), tuple(values["parts"]))


def explain(
    model: Model | Compiled,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    about: About = "summary",
    schedule: Schedule | None = None,
    machine: str | Path | Machine = "rda",
    top: int = TOP,
    no_changes: bool = False,
    engine: Engine = "auto",
    count: CountingRule | None = None,
    array: str | Path | ArraySettings | None = None,
    simulate: bool = False,
    progress: ProgressCallback | None = None,
    **arguments: Unpack[ModelArguments],
) -> Explanation:
    """Explain a compiled program, or a model with the arguments of `fuseflow.compile`, as `fuseflow explain ABOUT` does.

    `about` is one of

    - `summary`: runs the program, and says what limits it and what would help. `no_changes`, `engine` and `progress` are as for `cycles`.
    - `cycles`: runs the program, follows the critical path of each region, and says what would take fewer cycles. `top` rows of each table
      are shown; `no_changes` compiles and compares no other schedules. `engine` and `progress` are as in `Compiled.run`.
    - `fusion`: which neighbouring Einsums are fused, why, and what that costs; on an `array`, what each region would take there.
    - `order`: what each loop order must respect, and why it was chosen. `count` counts the legal orders: `reference` or `merged`.
    - `plan`: what the parts of a plan hold and cost; `simulate` also runs the program with the plan and without it.

    Raises `UsageError` for another `about`, and a subclass of `FuseFlowError` where the program does not compile or run.

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> program = ff.compile(text, ([[1, 0], [2, 3]], [4, 5]))
    >>> str(ff.explain(program, about="cycles")).split(";")[0]
    'region y: ... cycles'
    >>> ff.explain(program).to_dict()["cycles"] == program.run().cycles
    True
    """
    if about not in get_args(About):
        raise UsageError(f"`about={about!r}` names nothing that is explained", hint=did_you_mean(about, get_args(About)))
    settings = array_of(array)
    compiled = compiled_of(model, inputs, schedule, machine, arguments, explain, settings)
    match about:
        case "summary":
            return explanation_of_summary(compiled, engine, progress, no_changes)
        case "order":
            return explanation_of_order(compiled, count)
        case "fusion":
            return explanation_of_fusion(compiled, schedule or compiled.schedule, settings)
        case "cycles":
            return explanation_of_cycles(compiled, engine, progress, top, no_changes)
        case "plan":
            source = compiled.source.original or compiled.source
            return explanation_of_plan(source, compiled.schedule, compiled.machine, simulate)
        case _:
            assert_never(about)
