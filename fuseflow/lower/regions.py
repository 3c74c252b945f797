"""One region after the other: fused in its best order, to a table and a graph, with what it reads in another order copied first."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from fuseflow.compiler.lanes import Places, with_lanes
from fuseflow.compiler.seen import Seen, needed_order, refuse_view, see, source_of, view_format
from fuseflow.einsum.indices import substitute_tensors
from fuseflow.einsum.nodes import Access, Einsum, Program, TensorType
from fuseflow.errors import FusionError
from fuseflow.estimate import Estimate, TensorStatistics, estimate
from fuseflow.fusion import Copy, FusedRegion, choose_order, fuse
from fuseflow.fusion.copies import needed, restored, settle, settled_name
from fuseflow.fusion.fuse import Merge, own_names
from fuseflow.fusion.verify import verify as verify_region
from fuseflow.samml.nodes import Graph
from fuseflow.samml.verify import verify as verify_graph
from fuseflow.schedule import Region, Schedule
from fuseflow.table import FusionTable, build_table, emit
from fuseflow.tensors import Format
from fuseflow.transform import fifos

MERGES: tuple[Merge, ...] = ("early", "late", "never")
"""How views are merged: what compiles fast, then what sees all constraints, then what has the most freedom."""

COPIES = {True: ("never", "cycles", "free"), False: ("never",)}
"""Which tensors are copied, by whether copies are allowed."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to fuse a region: which tensors are copied, how views are merged, the results that keep their declared mode order."""

    copies: str
    merge: Merge
    pinned: frozenset[str]


@dataclass(frozen=True, slots=True)
class CompiledRegion:
    """One region at every stage, with what it is expected to cost. Without `einsums` it is a copy that the next one reads.

    `before` and `after` are the tensors that are seen in other dimensions for this region to read, and as outputs of the program;
    `places` the lanes that the nodes of `graph` are in.
    """

    name: str
    einsums: tuple[str, ...]
    fused: FusedRegion
    table: FusionTable
    graph: Graph
    estimate: Estimate
    before: tuple[Seen, ...] = ()
    after: tuple[Seen, ...] = ()
    places: Places = field(default_factory=dict)

    @property
    def written(self) -> dict[str, TensorType]:
        """The results as they are in memory."""
        as_written = self.graph.declared
        return {
            r.name: replace(r.tensor, format=as_written[r.name].format, fill=as_written[r.name].fill) for r in self.fused.results
        }

    @property
    def serial(self) -> Graph:
        """The graph without lanes."""
        return emit(self.table) if self.places else self.graph


@dataclass(slots=True)
class Lowering:
    """What is known while a program is lowered: `stored`, what is in memory by now with the formats it really has; its statistics,
    `known`; the names of the tensors whose format the user `declared`; the statements that are `views`, by name;
    and what the user calls a tensor that has a name of ours, `called`."""

    program: Program
    schedule: Schedule
    declared: frozenset[str]
    stored: dict[str, TensorType]
    known: dict[str, TensorStatistics]
    views: Mapping[str, Einsum] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    _chosen: dict[Hashable, tuple[Way, FusedRegion]] = field(default_factory=dict)
    _copies: dict[tuple[str, tuple[int, ...]], Estimate] = field(default_factory=dict)

    def region(self, region: Region, results: tuple[str, ...], chain: tuple[str, ...]) -> Iterator[CompiledRegion]:
        """The region in its best order, after the copies that it reads."""
        made: list[CompiledRegion] = []
        waiting: tuple[Seen, ...] = ()
        for step in self._steps(region, results, chain):
            if isinstance(step, CompiledRegion):
                made.append(replace(step, before=waiting))
                waiting = ()
            else:
                waiting += (step,)
        made[-1] = replace(made[-1], after=waiting)
        yield from made

    def _steps(self, region: Region, results: tuple[str, ...], chain: tuple[str, ...]) -> Iterator[CompiledRegion | Seen]:
        """What is done for a region, in order."""
        for name in dict.fromkeys(n for e in region.einsums for n in self.program.defined[e].operands):
            yield from self._see(name)
        fused = self._fuse(region, results, chain)
        for copy in fused.copies:
            if copy.name not in self.stored:
                yield self._compiled(copy.name, (), self._copy(copy, fused))
        yield self._compiled(region.name, region.einsums, fused)
        for name in self.program.outputs:
            if self._root(name) in results:
                yield from self._see(name)

    def _root(self, name: str) -> str:
        """What a view sees in the end."""
        while name in self.views:
            name = source_of(self.views[name]).tensor
        return name

    def _see(self, name: str) -> Iterator[CompiledRegion | Seen]:
        """See what this view sees, if it is one; after a copy, where dense dimensions are not stored in the order that takes."""
        view = self.views.get(name)
        if view is None or name in self.stored:
            return
        tensor = source_of(view).tensor
        yield from self._see(tensor)
        source, asked = self.stored[tensor], self.program.declared[name].format if name in self.declared else None
        format = view_format(view, source)
        if format is None or asked not in (None, format):
            if source.format is None or not source.format.all_dense:
                raise refuse_view(view, source, self.called.get(tensor, tensor))
            order = needed_order(view, asked)
            made = replace(source, name=self._copy_name(tensor, order), format=Format.of(*["dense"] * len(order), order=order))
            if made.name not in self.stored:
                yield self._compiled(made.name, (), self._copied(source, made))
            source = self.stored[made.name]
            format = view_format(view, source)
        assert format is not None
        step = see(source, format, self.known[source.name], self.program.declared[name])
        self.stored[name], self.known[name] = step.type, step.statistics
        yield step

    def _copy_name(self, tensor: str, order: tuple[int, ...]) -> str:
        """What a dense copy is called."""
        name = "_".join([f"{tensor}.dense", *map(str, order)])
        while name in self.program.declared:
            name += "_"
        return name

    def _compiled(self, name: str, einsums: tuple[str, ...], fused: FusedRegion) -> CompiledRegion:
        table, graph, cost, written = self._lower(fused)
        places: Places = {}
        if einsums and self.schedule.parallel:
            made = with_lanes(graph, table, fused, self.schedule)
            graph, places = made.graph, made.places
            cost, _ = estimate(graph, self._known(fused))
        graph = fifos(graph)
        verify_region(fused)
        verify_graph(graph)
        self.known |= written
        made_region = CompiledRegion(name, einsums, fused, table, graph, cost, places=places)
        self.stored |= made_region.written
        return made_region

    def _fuse(self, region: Region, results: tuple[str, ...], chain: tuple[str, ...]) -> FusedRegion:
        if chain:
            return self._first(region, results, chain, self._named(region, results, chain))[1]
        key = self.key(region, results)
        if key in self._chosen:
            way, like = self._chosen[key]
            fused = self._scheduled(self._fused(region, results, (), way))
            if fused.indices == like.indices and not (fused.copies or like.copies):
                return replace(fused, order=like.order, compared=like.compared, locate=like.locate)
        self._chosen[key] = self._unasked(region, results)
        return self._chosen[key][1]

    def key(self, region: Region, results: tuple[str, ...]) -> Hashable:
        """What the choice for a region follows from, equal for regions that differ in names alone: a model repeats its layers."""
        einsums = [self.program.defined[e] for e in region.einsums]
        names = {name: n for n, name in enumerate(dict.fromkeys(n for e in einsums for n in (*e.operands, e.name)))}
        bodies = tuple(
            (names[e.name], e.indices, substitute_tensors(e.body, {n: f"t{k}" for n, k in names.items()})) for e in einsums
        )
        read = tuple(
            (t.shape, t.format, t.dtype, repr(t.fill), t.block, self.known.get(n))
            for n in names
            for t in (self.stored.get(n),)
            if t is not None
        )
        here = tuple(n in self.stored for n in names)
        made = tuple((self.program.declared[e.name].format, self.program.declared[e.name].block) for e in einsums)
        seen = {source_of(view).tensor for view in self.views.values()}
        wishes = [(n in self.declared, n in seen, n in self.program.outputs, n in self.schedule.drop_zeros) for n in results]
        return bodies, read, here, made, tuple(names[n] for n in results), tuple(wishes)

    def _unasked(self, region: Region, results: tuple[str, ...]) -> tuple[Way, FusedRegion]:
        """The first way in which the region can be lowered, or that with fewer views merged if it is expected to cost less."""
        way, fused = self._first(region, results, (), None)
        if not fused.merged or way.merge == "never":
            return way, fused
        leaner = replace(way, merge="lean")
        try:
            other = self._fused(region, results, (), leaner)
            if len(other.indices) == len(fused.indices):
                return way, fused
            other = self._ordered(other)
        except FusionError:
            return way, fused
        return (leaner, other) if self._cost(other).rank < self._cost(fused).rank else (way, fused)

    def _first(
        self, region: Region, results: tuple[str, ...], chain: tuple[str, ...], merge: Merge | None
    ) -> tuple[Way, FusedRegion]:
        """The first way to fuse the region that some order can be lowered in; `merge`: how views are merged."""
        refusals: dict[Way, FusionError] = {}
        for way in self._ways(results, MERGES if merge is None else (merge,)):
            try:
                return way, self._ordered(self._fused(region, results, chain, way))
            except FusionError as error:
                refusals[way] = error
        said = [way for way in refusals if way.copies == COPIES[self.schedule.copies][-1] and way.merge == (merge or MERGES[0])]
        raise refusals[said[-1]]  # that of the fewest wishes

    def _named(self, region: Region, results: tuple[str, ...], chain: tuple[str, ...]) -> Merge | None:
        """How views are merged in the region whose loops the user names.

        That decides which loops there are, and an order is never honoured where its names mean others. They are those of the region as
        it is without an order; else of the first in which all of them exist.
        """
        found: Merge | None = None
        try:
            unasked = [self._unasked(region, results)[0]]
        except FusionError:
            unasked = []
        for way in (*unasked, *self._ways(results, MERGES)):
            try:
                fused = self._fused(region, results, (), way)
                local = fused.local.get(fused.einsums[0], {}) if len(fused.einsums) == 1 else {}
                names = own_names(chain, local, fused.indices)
                there = len(set(names)) == len(names) and set(names) <= set(fused.indices)
                found = found or (way.merge if there else None)
                if way not in unasked:
                    self._ordered(fused)
            except FusionError:
                continue
            if there:
                return way.merge
        return found

    def _fused(self, region: Region, results: tuple[str, ...], chain: tuple[str, ...], way: Way) -> FusedRegion:
        return fuse(
            self.program,
            region.name,
            region.einsums,
            results,
            self.stored,
            chain=chain,
            pinned=way.pinned,
            merge=way.merge,
            iteration=self.schedule.iteration,
            price=None if way.copies == "never" else self._price,
            free=way.copies == "free",
        )

    def _ways(self, results: tuple[str, ...], merges: tuple[Merge, ...]) -> Iterable[Way]:
        """Ways to fuse, best first. Results that later regions scan, or see in other dimensions, keep their declared mode order if any
        order allows it; copies are made where nothing else helps: first those that break a cycle, then whatever makes an order possible."""
        fixed = frozenset(r for r in results if r in self.declared)
        formats = {r: self.program.declared[r].format for r in results}
        seen = {source_of(view).tensor for view in self.views.values()}
        scanned = {
            r for r, f in formats.items() if r in seen or (f is not None and not f.all_dense and r not in self.program.outputs)
        }
        ways = (
            Way(copies, merge, pinned)
            for copies in COPIES[self.schedule.copies]
            for merge in merges
            for pinned in (fixed | scanned, fixed)
        )
        return dict.fromkeys(ways)

    def _ordered(self, fused: FusedRegion) -> FusedRegion:
        """The order by the schedule's policy; dense levels located or joined as the schedule says, or as it costs less; no copy that is
        not needed."""
        fused = self._scheduled(fused)
        chosen = choose_order(fused, self._cost, self.schedule.order_policy)
        for copy in chosen.copies:
            if not needed(copy, self.stored[copy.source], chosen.order):
                without = restored(chosen, copy, self.stored[copy.source])
                chosen = chosen if self._rank(without) is None else without
        if self.schedule.locate == "auto":
            joined = replace(chosen, locate=False)
            before = next(c.rank for c in chosen.compared if c.order == chosen.order)
            after = self._rank(joined)
            chosen = joined if after is not None and after < before else chosen
        return settle(chosen, self.program.declared)

    def _scheduled(self, fused: FusedRegion) -> FusedRegion:
        """The region as the schedule wants all of them lowered."""
        results = tuple(replace(r, drop_zeros=r.name in self.schedule.drop_zeros) for r in fused.results)
        return replace(fused, results=results, repeat=self.schedule.repeat, locate=self.schedule.locate != "never")

    def _rank(self, region: FusedRegion) -> float | None:
        """Of the region in its order, None if that is refused."""
        try:
            return self._cost(region).rank
        except FusionError:
            return None

    def _copy(self, copy: Copy, fused: FusedRegion) -> FusedRegion:
        """The region that makes a copy: it reads the source in its own order and permutes what it writes."""
        return self._copied(self.stored[copy.source], replace(fused.declared[copy.name], name=copy.name))

    def _copied(self, source: TensorType, made: TensorType) -> FusedRegion:
        indices = tuple(f"i{d}" for d in range(len(source.shape)))
        program = Program((source, made), (Einsum(made.name, indices, Access(source.name, indices)),), (made.name,))
        only_result = lambda name: 0.0 if name == made.name else math.inf  # noqa: E731
        region = fuse(program, made.name, (made.name,), (made.name,), self.stored, pinned=(made.name,), price=only_result)
        return choose_order(region, self._cost)

    def _price(self, name: str) -> float:
        """Stored values: exactly those that are measured or estimated, as many as there are places of a result not computed yet."""
        known = self.known.get(name)
        return known.stored if known else float(math.prod(self.program.declared[name].stored_shape))

    def _cost(self, region: FusedRegion) -> Estimate:
        """Of the region and the copies that its order needs."""
        cost = self._lower(region)[2]
        for copy in region.copies:
            cost += self._copying(copy, region)
        return cost

    def _copying(self, copy: Copy, region: FusedRegion) -> Estimate:
        """What a copy costs, nothing if it is not needed or made before."""
        order = copy.order(region.order)
        made = settled_name(copy, region.order, self.program.declared) in self.stored
        if made or not needed(copy, self.stored[copy.source], region.order):
            return Estimate(0, 0, 0, 0)
        if (copy.source, order) not in self._copies:
            self._copies[copy.source, order] = self._lower(self._copy(copy, region))[2]
        return self._copies[copy.source, order]

    def _lower(self, fused: FusedRegion) -> tuple[FusionTable, Graph, Estimate, dict[str, TensorStatistics]]:
        table = build_table(fused)
        graph = emit(table)
        cost, written = estimate(graph, self._known(fused))
        return table, graph, cost, written

    def _known(self, fused: FusedRegion) -> dict[str, TensorStatistics]:
        """The statistics of what a region may read."""
        known = {**self.known}
        for copy in fused.copies:
            known[copy.name] = self.known.get(copy.name) or self._permuted(copy, fused.order)
        return known

    def _permuted(self, copy: Copy, loops: tuple[str, ...]) -> TensorStatistics:
        format = self.stored[copy.source].format
        assert format is not None
        return self.known[copy.source].permuted(tuple(format.order.index(d) for d in copy.order(loops)))
