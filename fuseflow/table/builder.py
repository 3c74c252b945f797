"""Algorithm 2: a fused region in a loop order becomes a fusion table (factored iteration; rules L1-L11 of the lowering contract).

The table is filled row by row, one row a loop. At each row every view of the nest advances against one final coordinate stream. A
reduction is completed, in a nest for itself, just before the first loop at or after its reduction index, and is a bundle of
streams from then on; where a loop that it lacks comes before one of its free indices, it is left alone and runs again inside that
loop. A selection is completed in the same way, before the first of the indices along which it compares.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import ParamSpec, TypeVar, assert_never

from fuseflow.errors import FusionError
from fuseflow.fusion.nest_work import Completion
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Operation, Producer, Reduction, Selection, Tree, View
from fuseflow.keep_rules import NONZERO, Threshold
from fuseflow.ops import REDUCERS
from fuseflow.samml.nodes import Accumulate, Align, Alu, Drop, Join, Operand, Port, Range, Reduce, Select
from fuseflow.table.join_trees import (
    EVERYWHERE,
    JoinedPayload,
    Joiner,
    JoinTree,
    Placed,
    Side,
    Total,
    combine_operands,
    placed_tree,
)
from fuseflow.table.memo import Reach, TableMemo
from fuseflow.table.nest import Bundle, Loop, Nest, Step, Steps, ViewCursor
from fuseflow.table.node_interning import Cells, LoopContext
from fuseflow.table.table import Evaluation
from fuseflow.table.value_row import Arithmetic
from fuseflow.table.views import ViewReader

T = TypeVar("T")
P = ParamSpec("P")


class TableBuilder:
    """A builder that fills the cells of one region's table, step by step. Tables of the region in other orders that use the same
    `memo` share nodes and steps."""

    def __init__(self, region: FusedRegion, memo: TableMemo | None = None) -> None:
        self.region = region
        self.memo = TableMemo.of(region, Cells()) if memo is None else memo
        self.declared, self.cells, self.tiling = self.memo.declared, self.memo.cells, self.memo.tiling
        self.place = {v: p for p, v in enumerate(region.order)}
        self.completion = Completion(self.place, self.memo.single)
        self.cells.used.clear()
        self.root = self.cells.root()
        self.evaluations: dict[Evaluation, None] = {}
        self.views = ViewReader(region, self.cells, self.declared, ViewCursor(self.root), self.memo.levels)
        self.arithmetic = Arithmetic(region, self.cells, self.tiling)
        self.orders_inside: dict[Producer, tuple[str, ...]] = {}

    def length(self, v: str) -> int:
        """Return the most iterations that the loop over index `v` has: one for each coordinate, or for each block of coordinates."""
        return -(-self.region.sizes[v] // self.tiling.blocks.get(v, 1))

    # One nest ----------------------------------------------------------------------------------------------------------------

    def bundle(self, nest: Nest) -> Bundle:
        """Run the remaining loops of a nest, and return its streams. Nests with all views and bundles at equal positions run once."""
        node = nest.producer
        start = node, nest.loops, tuple([nest.env.get(n) for n in self.memo.below[node]])
        equal = self.memo.starts.setdefault(start, nest)
        if node not in self.orders_inside:  # the nest depends on the order of the loops inside of it alone
            self.orders_inside[node] = tuple([v for v in self.region.order if v in self.memo.indices[node]])
        bundle = self.step(equal.bundles, ("run", self.orders_inside[node]), node.label, self.run, equal)
        self.cells.needs(bundle.value)
        return bundle

    def step(
        self, steps: Steps[T], key: Hashable, stage: str, take: Callable[P, T], *arguments: P.args, **keywords: P.kwargs
    ) -> T:
        """Return the outcome of a step: the result of `take` with these arguments. Tables that share a memo take a step once, by
        `steps` and `key`. Either way this table uses the nodes of the step. Nodes without a stage are put in `stage`."""
        cells, step = self.cells, steps.get(key)
        if step is None:
            outside, cells.used = cells.used, {}
            outcome = take(*arguments, **keywords)
            cells.claim(stage)
            step = steps[key] = Step(outcome, cells.used)
            cells.used = outside
        cells.use_all(step.used)
        return step.outcome

    def run(self, outside: Nest) -> Bundle:
        """Run the remaining loops of the nest `outside`, and reduce its values or select among them."""
        node = outside.producer
        loops = sorted({*node.free, *node.over}.difference(outside.indices, self.memo.single), key=self.place.__getitem__)
        total = self.total_loops(node, loops)
        nest = self.reopened(outside, loops)
        for v in loops:
            nest = self.entered(self.completed(nest, v), v, v in total)
        nest = self.completed(nest, None)
        return self.step(nest.bundles, ("reduced", outside.depth), "", self.reduced_values, nest, outside)

    def reduced_values(self, nest: Nest, outside: Nest) -> Bundle:
        """Return the bundle of a nest whose loops have all run, inside the loops of the nest `outside`."""
        value, node = self.computed(nest), nest.producer
        self.evaluated(node, value, outside.indices)
        if isinstance(node, Reduction):
            return self.folded(node, nest, value, outside.depth)
        return self.selected(node, nest.loops[outside.depth :], value)

    def total_loops(self, node: Producer, loops: list[str]) -> set[str]:
        """Return the loops that visit every coordinate (L8). Where absent entries count, because the body's implicit value is not the
        reducer's identity, they are the first reduced loop and every loop inside it. A selection compares absent entries that are not 0,
        and those that it may keep."""
        fill = self.region.fill[node.body]
        if isinstance(node, Selection):
            return set() if fill == 0 and not node.keeps_zeros else set(loops)
        over = self.completion.awaited(node)
        if not over or fill == REDUCERS[node.op].identity:
            return set()
        first = min(self.place[v] for v in over)
        return {v for v in loops if self.place[v] >= first}

    def selected(self, node: Selection, levels: LoopContext, value: Port) -> Bundle:
        """Return the entries that a rule keeps in a nest: its innermost levels lose the coordinates of all other entries."""
        self.cells.begin("{}: keep {}", node.label, str(node.rule))
        if isinstance(node.rule, Threshold) and node.rule != NONZERO:
            slots = Operand(0.0), Operand(node.rule.least, constant=True)
            (value,) = self.cells.put(Alu("threshold", (value,), "threshold", slots))
        count = min(len(levels), len(node.over) or 1)
        outer, inner = levels[: len(levels) - count], levels[len(levels) - count :]
        if inner:
            inputs, rule = (*(crd for _, crd in inner), value), node.rule
            selector: Drop | Select  # it drops entries, and the coordinates that have no entries left
            if isinstance(rule, Threshold):
                selector = Drop(f"drop_{node.label}", inputs, 0.0)
            else:
                by = rule.by == "greatest", rule.by == "least"
                selector = Select(f"select_{node.label}", inputs, rule.count, rule.every, len(node.over), *by, rule.marks)
            *crds, value = self.cells.put(selector)
            inner = tuple((v, crd) for (v, _), crd in zip(inner, crds, strict=True))
        for v, crd in inner:
            self.cells.note(node.label, v, "Keep = {}", crd)
        self.cells.note(node.label, "val", "{}", value)
        return Bundle((*outer, *inner), value)

    def folded(self, node: Reduction, nest: Nest, value: Port, outside: int) -> Bundle:
        """Reduce values over the reduced loops of a nest, innermost first (L7). The bundle has levels inside `outside` loops."""
        levels = list(nest.loops)
        if node.over:
            self.cells.begin("{}: {} over {}", node.label, node.op, ", ".join(node.over))
        for p in reversed(range(nest.depth)):
            if levels[p][0] in node.over:
                levels[p:], value = self.reduced(node, tuple(levels[p:]), value)
        self.cells.note(node.label, "val", "{}", value)
        return Bundle(tuple(levels[outside:]), value)

    def reduced(self, node: Reduction, levels: LoopContext, value: Port) -> tuple[LoopContext, Port]:
        """Reduce the values over the first of some levels. Return the levels that are left, and the values."""
        (v, _), *inner = levels
        if not inner:
            (value,) = self.cells.put(Reduce(f"red_{v}", (value,), node.op))
            self.cells.note(node.label, v, f"Red_{node.op} = {{}}", value)
            return (), value
        inputs = (*(crd for _, crd in levels), value)
        *crds, value = self.cells.put(Accumulate(f"acc_{v}", inputs, node.op, len(inner)))
        left = tuple((w, crd) for (w, _), crd in zip(inner, crds, strict=True))
        for w, crd in left:
            self.cells.note(node.label, w, f"Acc{len(inner)}_{v}[{{}}]", crd)
        return left, value

    # When producers are completed ----------------------------------------------------------------------------------------------

    def completed(self, nest: Nest, v: str | None) -> Nest:
        """Return the nest with every producer completed that must be finished before loop `v` (all of them for None), the first
        ones first. A producer inside another one that is due, too, is completed in the nest of that one. So each of these is
        needed: nothing between it and the body can make it again once loop `v` has run over a level of it."""
        for node in self.due(nest, v):
            bundle = self.bundle(nest.of(node, self.memo.inside[node]))  # what follows depends on no order inside of the producer
            nest = self.step(nest.nests, (node, bundle), "", nest.standing, {node: bundle})
        return nest

    def due(self, nest: Nest, v: str | None) -> list[Producer]:
        """Return the producers to complete before loop `v` (for None, all that are left), but none inside another one of them."""
        env = nest.env
        open_producers = [node for node in self.reach(nest).producers if node not in env]
        run = nest.indices if open_producers else ()
        ready = {node for node in open_producers if v is None or self.completion.is_due(node, v, run)}
        if not ready:
            return []
        outermost = self.memo.reach((nest.body,), nest.completed.union(ready)).producers
        return [node for node in outermost if node in ready]

    def reopened(self, nest: Nest, loops: list[str]) -> Nest:
        """Return the nest without the bundles that cannot be repeated as a whole (L6). Where this nest has a loop that a bundle lacks,
        outside one of the bundle's remaining levels, the producer is instantiated again inside this nest."""
        again: dict[Tree, None] = {}
        for node in self.reach(nest).producers:
            bundle = nest.env.get(node)
            if not isinstance(bundle, Bundle) or not bundle.levels:
                continue
            left = bundle.indices
            last = max(self.place[w] for w in left)
            enclosed = [v for v in loops if self.place[v] < last and v not in left]
            if enclosed and not bundle.whole:
                raise self.enclosed(node, enclosed[0], left[0])
            if enclosed:
                again[node] = None
        if not again:
            return nest
        return self.step(nest.nests, ("reopened", *again), "", nest.without, again)

    def enclosed(self, node: Producer, loop: str, level: str) -> FusionError:
        """Return the error of an order that cannot be streamed: a loop that a producer lacks is between two of its levels."""
        work = f"reduction over {','.join(node.over)}" if isinstance(node, Reduction) else f"selection, {node.rule},"
        return FusionError(
            f"order {','.join(self.region.order)} of region `{self.region.name}` reads {node} inside loop {loop}, which it lacks, "
            f"between two of its levels: {level} is still to come, and its {work} lies outside",
            hint=f"put loop {loop} outside every index of {node.label}, or inside all of them",
        )

    def reach(self, nest: Nest, *trees: Tree) -> Reach:
        """Return the nodes below some trees, or below the body of the nest, producers first and not inside completed reductions."""
        return self.memo.reach(trees or (nest.body,), nest.completed)

    # One loop ------------------------------------------------------------------------------------------------------------------

    def entered(self, nest: Nest, v: str, total: bool) -> Nest:
        """Return the nest after loop `v`, as `looped` does. Tables that share a memo run the loop once."""
        entered = self.step(nest.nests, ("looped", v, total), "", self.looped, nest, v, total)
        crd = entered.loops[-1][1]
        if not isinstance(self.cells.nodes[crd.node], Align):  # values that are aligned alike need no coordinates
            self.cells.needs(crd)
        return entered

    def looped(self, nest: Nest, v: str, total: bool) -> Nest:
        """Return the nest after loop `v`. If it is `total`, the loop visits every coordinate."""
        self.cells.begin("{}: loop {}", nest.producer.label, v)
        tree, scanned = self.join_tree(nest, v)
        joiner = Joiner(self.cells, v)
        kept = ((view, ref) for view, ref in scanned.items() if self.views.keeps(view, nest))
        joiner.kept = {Port(ref.node): self.region.level_tensor(view.tensor, 0) for view, ref in kept}
        if total and not isinstance(tree, Total):
            tree = Total((tree,))
        if isinstance(tree, Total):
            crd, reference = self.driver(nest, v)
            joiner.driver = crd, {ref: JoinedPayload(ref) for ref in reference.values()}
            scanned |= reference
        crd, moved = joiner.run(tree)
        return self.advanced(Loop(nest.inside(v, crd), scanned, moved, joiner.located))

    def join_tree(self, nest: Nest, v: str) -> tuple[JoinTree, dict[View, Port]]:
        """Return the join tree of the body at loop `v`, and the reference stream of every view that was scanned for it.

        A node that is not in `trees` is defined everywhere, as most nodes are. So is an operator whose operands all are."""
        trees: dict[Tree, JoinTree] = {}
        scanned: dict[View, Port] = {}
        for node in self.reach(nest).by_index.get(v, ()):
            match node:
                case View():
                    if streams := self.views.joined(node, v, nest):
                        crd, scanned[node] = streams
                        trees[node] = Side(crd, (scanned[node],))
                case Operation(is_placed=True) if isinstance(side := trees.get(node.args[0]), Side):
                    body = trees.get(node.args[1], EVERYWHERE)
                    if isinstance(body, Total):
                        trees[node] = Placed(side, body.probed)
                    else:
                        trees[node] = placed_tree((Placed(side), body)) or Placed(side, (body,))
                case Operation():
                    if not trees.keys().isdisjoint(node.args):
                        pairs = zip(node.args, self.memo.fixes[node], strict=True)
                        operands = [(trees.get(a, EVERYWHERE), fixes) for a, fixes in pairs if not isinstance(a, Constant)]
                        trees[node] = combine_operands(operands)
                case Reduction() | Selection():
                    if isinstance(bundle := nest.env.get(node), Bundle):
                        trees[node] = self.bundle_tree(node, bundle, v)
                    elif node.body in trees:
                        body, fill = trees[node.body], self.region.fill[node.body]
                        everywhere = isinstance(node, Selection) and (node.keeps_zeros or fill != 0)  # absent entries may be kept
                        trees[node] = Total((body,)) if everywhere and not isinstance(body, Total) else body
                case Constant():
                    pass
                case unknown:
                    assert_never(unknown)
        return trees.get(nest.body, EVERYWHERE), scanned

    def bundle_tree(self, node: Producer, bundle: Bundle, v: str) -> JoinTree:
        """Return the join tree of a completed producer at loop `v`."""
        if v not in bundle.indices:
            return EVERYWHERE
        if bundle.indices[0] != v:
            raise self.enclosed(node, v, bundle.indices[0])
        return Side(bundle.levels[0][1], (bundle.value,) if len(bundle.levels) == 1 else ())

    def driver(self, nest: Nest, v: str) -> tuple[Port, dict[View, Port]]:
        """Return the coordinates of a total loop: of a dense level that a view has reached, with its references, or of a range. Views
        of tensors that share their places have these references, too."""
        below = self.reach(nest).by_index.get(v, ())
        views = [node for node in below if isinstance(node, View) and self.views.enumerates(node, v, nest)]
        if not views:
            return self.everywhere(v, nest.loops), {}
        crd, ref = self.views.scan(views[0], v, nest)
        return crd, {view: ref for view in views if view is views[0] or self.views.alike(view, views[0], nest)}

    def everywhere(self, v: str, loops: LoopContext) -> Port:
        """Return the coordinates of the range of a loop, inside other loops."""
        ref = self.cells.lift(self.root, loops, len(loops), "range")
        return self.cells.level(Range(f"range_{v}", (ref,), self.length(v)), v)[0]

    def advanced(self, loop: Loop) -> Nest:
        """Return the nest with every view and bundle advanced past a loop."""
        places: dict[Tree, ViewCursor | Bundle] = {}
        index, env = loop.index, loop.nest.env
        for node in self.reach(loop.nest).places(index):
            if isinstance(node, View):
                places[node] = self.views.advanced(node, loop)
            elif isinstance(bundle := env.get(node), Bundle) and bundle.levels:
                places[node] = self.advanced_bundle(node, bundle, loop)
        return loop.nest.standing(places)

    def advanced_bundle(self, node: Producer, bundle: Bundle, loop: Loop) -> Bundle:
        """Return a completed producer after a loop: one level further in, with its streams aligned to the loop's coordinates."""
        (index, old), *rest = bundle.levels
        if index != loop.index:
            raise self.enclosed(node, loop.index, index)
        if not rest:
            value = loop.moved[bundle.value]
            self.cells.note(node.label, index, "{}", old)
            return Bundle((), value.port, value.nullable, whole=False)
        levels = tuple((w, self.cells.align(node.label, w, c, old, loop.crd)) for w, c in rest)
        value_below = self.cells.align(node.label, "val", bundle.value, old, loop.crd)
        return Bundle(levels, value_below, bundle.nullable, whole=False)

    # Values --------------------------------------------------------------------------------------------------------------------

    def computed(self, nest: Nest) -> Port:
        """Return the value stream that the nest folds, at the depth of its loops and without `N` (L9)."""
        label = nest.producer.label
        self.cells.begin("{}: values", label)
        value, nullable = self.value(nest)
        value = self.cells.lift(value, nest.loops, nest.depth, label)
        return self.filled(value, self.region.fill[nest.body]) if nullable else value

    def value(self, nest: Nest) -> tuple[Port, bool]:
        """Return the value stream that the nest folds, already folded inside its tiles, and whether it may hold `N`."""
        node = nest.producer
        plan = self.tiling.contractions.get(node)
        ports = self.values(nest, (node.body,) if plan is None else plan.operands)
        if plan is not None:
            value = self.arithmetic.contract(node, plan, {n: port for n, (port, _) in ports.items()}, nest.loops)
            self.evaluated(node.body, value, self.around(nest, value))
            return value, False
        port, nullable = ports[node.body]
        if isinstance(node, Selection):
            return port, nullable
        value = self.arithmetic.fold(node.op, node.over, self.arithmetic.term(node.body, port), nest.loops)
        return value, nullable and value == port

    def values(self, nest: Nest, trees: tuple[Tree, ...]) -> dict[Tree, tuple[Port, bool]]:
        """Return the value streams of some trees and of all trees below them, each with whether it may hold `N`."""
        memo: dict[Tree, tuple[Port, bool]] = {}
        for node in self.reach(nest, *trees).nodes:
            match node:
                case View(places=True):
                    pass  # it has a value of its own in no operator
                case Operation(is_placed=True):
                    memo[node] = self.placed(node, memo, nest)
                case View():
                    memo[node] = self.views.value(node, nest), False
                case Reduction() | Selection():
                    bundle = nest.env[node]
                    assert isinstance(bundle, Bundle)
                    memo[node] = bundle.value, bundle.nullable
                case Operation():
                    value = self.operation(node, memo, nest)
                    if self.cells.recorder is not None:
                        self.evaluated(node, value, self.around(nest, value))
                    memo[node] = value, False
                case Constant():
                    pass  # the operator has it as a constant
                case unknown:
                    assert_never(unknown)
        return memo

    def operation(self, node: Operation, values: Mapping[Tree, tuple[Port, bool]], nest: Nest) -> Port:
        """Return the value stream of an operator, given the streams of the operands that are no constants."""
        if self.tiling.blocks:
            terms = [self.arithmetic.term(a, values[a][0] if a in values else None) for a in node.args]
            return self.arithmetic.apply(node.name, terms, self.arithmetic.axes(node), nest.loops)
        operands = [(a, values[a][0]) for a in node.args if a in values]
        return self.arithmetic.elementwise(node.name, operands, self.memo.slots[node], nest.loops)

    def placed(self, node: Operation, values: Mapping[Tree, tuple[Port, bool]], nest: Nest) -> tuple[Port, bool]:
        """Return the value stream of an operator that gives its operand at the places of a tensor. Where a loop has other coordinates,
        too, the values there become `N`."""
        places, body, _ = node.args
        assert isinstance(places, View)
        if body not in values or (self.tiling.blocks and self.arithmetic.axes(body) != self.arithmetic.axes(node)):
            raise FusionError(
                f"region `{self.region.name}` computes a value for all elements of a block, or for all places, of `{places.tensor}`",
                hint="leave `like` out: then the value is stored as it is",
            )
        (value, nullable), cursor, fill = values[body], self.views.leaf(places, nest), self.region.fill[body]
        value = self.filled(value, fill) if nullable and fill != 0 else value
        if not cursor.nullable:
            return value, nullable and fill == 0
        value, (v, crd) = self.cells.lift(value, nest.loops, nest.depth, places), nest.loops[-1]
        ref = self.cells.lift(cursor.port, nest.loops, nest.depth, places)
        present, _ = self.cells.put(Drop(f"drop_{v}", (crd, ref)))
        there, kept = self.cells.put(Join(f"intersect_{v}", (present, crd, value), "intersect", (0, 1)))
        _, value = self.cells.put(Join(f"left_{v}", (crd, there, kept), "left", (0, 1)))
        return value, True

    def evaluated(self, node: Tree, value: Port, around: tuple[str, ...]) -> None:
        """Record that a node is computed on the stream `value`, inside the loops `around`."""
        if self.cells.recorder is not None:
            self.evaluations[Evaluation(node, value, around)] = None

    def around(self, nest: Nest, value: Port) -> tuple[str, ...]:
        """Return the loops of a nest that a value is computed in."""
        return () if self.cells.recorder is None else nest.indices[: self.cells.depth(value)]

    def filled(self, value: Port, fill: float) -> Port:
        """Return a value stream with the implicit value `fill` in place of `N` (L9)."""
        return self.cells.put(Alu("copy", (value,), "copy", (Operand(fill),)))[0]
