"""Lowers one region: it is fused in its best order, and becomes a table and a graph, after the views and the copies that it
reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from fuseflow.costs import Estimate
from fuseflow.einsum.nodes import TensorType
from fuseflow.fusion import FusedRegion
from fuseflow.fusion.region import verify_region
from fuseflow.lower.buffers import with_buffers, without_buffers
from fuseflow.lower.copies import copy_region, dense_copy, permuting_region
from fuseflow.lower.graphs import estimated, region_graph, scheduled_form, verified
from fuseflow.lower.lanes import LaneAssignment, StageLoops, stages_of, with_depths, with_lanes
from fuseflow.lower.region_fusion import fuse_region
from fuseflow.lower.reshape_views import TensorView, required_order, source_of, view_format, view_refusal, view_tensor
from fuseflow.lower.state import LoweringState, Precedent, RegionRequest
from fuseflow.notebook_table import ROOFLINE, Cell, SummaryTable
from fuseflow.samml.nodes import Alu, Graph
from fuseflow.schedule import Schedule
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.transform import mark_fiber_fifos

if TYPE_CHECKING:
    from fuseflow.lower.region_tile import RegionTile


@dataclass(frozen=True)  # with a place for cached values
class CompiledRegion:
    """One region after all steps of lowering, with its expected cost. A region without `einsums` is a copy that the next one
    reads.

    `views_before` are the views (a tensor in other dimensions) that this region reads, and `views_after` the views that are
    outputs of the program. `places` has the lanes of the nodes of `graph`. `own` is the graph in fuseflow's own primitives, if
    `graph` is its public form. `private` names what has no public form, if the schedule asks for public primitives and the graph
    is in fuseflow's own. `made_table` is the table if it was made to lower the region. `tiles` are the tiles in which the region runs,
    one after the other; without tiles, it runs as a whole.
    """

    name: str
    einsums: tuple[str, ...]
    fused: FusedRegion
    graph: Graph
    estimate: Estimate
    views_before: tuple[TensorView, ...] = ()
    views_after: tuple[TensorView, ...] = ()
    places: LaneAssignment = field(default_factory=dict)
    own: Graph | None = None
    private: tuple[str, ...] = ()
    made_table: FusionTable | None = None
    tiles: tuple[RegionTile, ...] = ()

    def __repr__(self) -> str:
        return f"<CompiledRegion {self.name}: {len(self.einsums)} Einsums, {len(self.graph.nodes)} nodes>"

    def _repr_html_(self) -> str:
        columns = ("region", "loop order", "Einsums", "nodes", ROOFLINE, "estimated FLOPs", "estimated bytes")
        return SummaryTable(", ".join(self.einsums), columns, (self.summary,)).to_html()

    @property
    def summary(self) -> tuple[Cell, ...]:
        """The row of the region in tables: name, loop order, number of Einsums and nodes, roofline, expected FLOPs and bytes."""
        cost, order = self.estimate, ",".join(self.fused.order)
        return self.name, order, len(self.einsums), len(self.graph.nodes), cost.cycles, cost.flops, cost.bytes

    @cached_property
    def table(self) -> FusionTable:
        """The fusion table of the region in its order."""
        return self.made_table or build_table(self.fused)

    @cached_property
    def stages(self) -> StageLoops:
        """The stages of the region (the nests of its producers), which may be dealt to lanes one by one, each with its loops."""
        return stages_of(self.serial, self.table)

    @property
    def views(self) -> dict[str, str]:
        """The tensor that each view before or after the region shows, by the name of the view."""
        return {view.name: view.source for view in (*self.views_before, *self.views_after)}

    @property
    def result_types(self) -> dict[str, TensorType]:
        """The declarations of the results, as they are stored in memory."""
        as_written = self.graph.declared
        types = {
            r.name: replace(r.tensor, format=as_written[r.name].format, fill=as_written[r.name].fill) for r in self.fused.results
        }
        return {name: self.fused.shared.get(name, type) for name, type in types.items()}

    @property
    def selection_notice(self) -> str:
        """A sentence that says that `graph` selects by public arithmetic, right for finite values alone; empty if it does not."""
        if self.own is None:
            return ""
        from fuseflow.transform.public import SELECTIONS  # takes long to load

        replaced = (node.function for node in self.own.nodes if isinstance(node, Alu))
        selections = dict.fromkeys(f"`{function}`" for function in replaced if function in SELECTIONS)
        if not selections:
            return ""
        return (
            f"region `{self.name}` computes {', '.join(selections)} in public primitives, which holds for finite values alone; "
            "`--primitives own` holds for infinities and NaN, too"
        )

    @property
    def serial(self) -> Graph:
        """The graph in fuseflow's own primitives, without lanes."""
        return emit(self.table) if self.places or self.own else self.graph


LoweringStep: TypeAlias = CompiledRegion | TensorView
"""A step of the lowering of a region: a region that runs, or a view of a tensor in other dimensions."""
LoweringSteps: TypeAlias = tuple[tuple[LoweringStep, ...], LoweringState]
"""Steps in order, and the state after them."""


def lower_region(state: LoweringState, request: RegionRequest) -> tuple[tuple[CompiledRegion, ...], LoweringState]:
    """Return the region in its best order, after the copies that it reads, and the state after it. Raises `FusionError`."""
    program = state.partitioned.program
    views_before, state = _views(state, (n for e in request.einsums for n in program.defined[e].operands))
    fused, precedent = fuse_region(state, request)
    copies: list[LoweringStep] = []
    for copy in fused.copies:
        if copy.name not in state.stored:
            region, state = _compiled(state, RegionRequest(copy.name, (), ()), copy_region(state, copy, fused))
            copies.append(region)
    region, state = _compiled(state, request, fused, precedent)
    showing = [output for output in program.outputs if state.partitioned.shown(output) in request.results]
    views_after, state = _views(state, showing)
    return _with_views((*views_before, *copies, region, *views_after)), state


def dealt_region(state: LoweringState, region: CompiledRegion, schedule: Schedule) -> CompiledRegion:
    """Return a region without lanes with the lanes and depths that a schedule states for it. `state` is the state before it, whose
    schedule states reuse buffers. Raises `ScheduleError` for lanes that the graph cannot have."""
    parallel = with_lanes(without_buffers(region.serial), region.table, region.fused, schedule)
    form = scheduled_form(state, parallel.graph)
    places = {node: parallel.places[origin] for node, origin in form.origins().items() if origin in parallel.places}
    graph = with_depths(verified(state, form.graph), region.name, places, schedule)
    graph = with_buffers(graph, state.partitioned, region.fused)
    own = None if form.graph is parallel.graph or form.graph == parallel.graph else mark_fiber_fifos(parallel.graph)
    return replace(region, graph=graph, places=places, own=own, private=form.private)


def _with_views(steps: Iterable[LoweringStep]) -> tuple[CompiledRegion, ...]:
    """Return the regions, each with the views before it, and the last region also with the views after it."""
    regions: list[CompiledRegion] = []
    waiting: tuple[TensorView, ...] = ()
    for step in steps:
        if isinstance(step, TensorView):
            waiting += (step,)
        else:
            regions.append(replace(step, views_before=waiting))
            waiting = ()
    return (*regions[:-1], replace(regions[-1], views_after=waiting))


def _compiled(
    state: LoweringState, request: RegionRequest, fused: FusedRegion, precedent: Precedent | None = None
) -> tuple[CompiledRegion, LoweringState]:
    """Compile a fused region in its loop order to a graph. Where an equal region was compiled before (`precedent`), its graph is
    taken, with other names. Return the compiled region, and the state of lowering behind the region."""
    lowered, schedule = region_graph(state, fused, precedent), state.partitioned.schedule
    places: LaneAssignment = {}
    own, form, cost = lowered.own, lowered.form, lowered.cost
    if request.einsums and schedule.parallel:
        parallel = with_lanes(own, lowered.table or build_table(fused), fused, schedule)
        own, form = parallel.graph, scheduled_form(state, parallel.graph)
        places = {node: parallel.places[origin] for node, origin in form.origins().items() if origin in parallel.places}
        cost, _ = estimated(state, form.graph, fused)
    if not lowered.renamed:  # else the region that it is like was verified
        verify_region(fused)
    graph = verified(state, form.graph)
    if request.einsums:
        graph = with_depths(graph, request.name, places, schedule)
    graph = with_buffers(graph, state.partitioned, fused)
    region = CompiledRegion(
        request.name,
        request.einsums,
        fused,
        graph,
        cost,
        places=places,
        own=None if form.graph is own or form.graph == own else mark_fiber_fifos(own),
        private=form.private,
        made_table=lowered.table,
    )
    return region, state.after_writing(region.result_types, lowered.written_statistics)


def _views(state: LoweringState, names: Iterable[str]) -> LoweringSteps:
    """Return the steps that make these views, where no earlier step has made them."""
    steps: tuple[LoweringStep, ...] = ()
    for name in dict.fromkeys(names):
        if name in state.partitioned.views and name not in state.stored:
            view_steps, state = _view(state, name)
            steps += view_steps
    return steps, state


def _view(state: LoweringState, name: str) -> LoweringSteps:
    """Return the steps that make a view: a copy comes first if dense dimensions are stored in another order than it needs."""
    view, declared = state.partitioned.views[name], state.declared[name]
    tensor = source_of(view).tensor
    steps, state = _views(state, (tensor,))
    source, user_format = state.stored[tensor], declared.format if name in state.partitioned.user_formats else None
    format = view_format(view, source)
    if format is None or user_format not in (None, format):
        if source.format is None or not source.format.all_dense:
            raise view_refusal(view, source, state.partitioned.user_names.get(tensor, tensor))
        copy = dense_copy(state, source, required_order(view, user_format))
        if copy.name not in state.stored:
            region, state = _compiled(state, RegionRequest(copy.name, (), ()), permuting_region(state, source, copy))
            steps += (region,)
        source = state.stored[copy.name]
        format = view_format(view, source)
    assert format is not None
    step = view_tensor(source, format, state.statistics[source.name], declared)
    return (*steps, step), state.after_writing({name: step.type}, {name: step.statistics})
