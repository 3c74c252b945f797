"""Algorithm 2: a fused region in a loop order becomes a fusion table (factored iteration; rules L1-L11 of the lowering contract).

The table is filled row by row, one row a loop. At each row every view of the nest advances against one final coordinate stream. A
reduction is completed, in a nest of its own, just before the first loop at or after its reduction index, and is a bundle of streams
from then on; where a loop that it lacks comes before one of its free indices, it is left alone and runs again inside that loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Number, Op, Reduction, Tree, View, annihilated, children, nodes
from fuseflow.ops import REDUCERS
from fuseflow.samml.nodes import (
    Accumulate,
    Align,
    Alu,
    Load,
    Locate,
    Operand,
    Port,
    Range,
    Reduce,
    Repeat,
    Scan,
)
from fuseflow.table.access import Bundle, Context, Leaf
from fuseflow.table.cells import Cells
from fuseflow.table.joins import Joiner, JoinTree, Moved, Side, Total, combine
from fuseflow.table.steps import Recorder
from fuseflow.table.table import Evaluation
from fuseflow.table.tiles import Tiling
from fuseflow.table.values import Arithmetic

Env: TypeAlias = dict[Tree, Leaf | Bundle]
"""Where every view and completed reduction of a nest stands."""


class Builder:
    """Fills the cells of one region's table, step by step."""

    def __init__(self, region: FusedRegion) -> None:
        self.region = region
        self.declared = region.declared
        self.place = {v: p for p, v in enumerate(region.order)}
        self.cells = Cells()
        self.root = self.cells.root()
        self.recorder = Recorder()
        self.evaluations: dict[Evaluation, None] = {}
        self.reached: dict[tuple[tuple[Tree, ...], frozenset[Tree]], tuple[Tree, ...]] = {}
        self.fixing: dict[Op, tuple[bool, ...]] = {}  # whether each operand fixes the result where it is absent
        self.below: dict[Reduction, tuple[Tree, ...]] = {}  # the views and reductions in its body
        self.tiling = Tiling(self.declared, region.blocks, {r.tree: r.indices for r in region.results})
        self.tiling.cover(*region.trees)
        self.arithmetic = Arithmetic(region, self.cells, self.tiling, self.lift)
        self.nests: dict[tuple[Reduction, Context, tuple[Leaf | Bundle | None, ...]], Bundle] = {}

    def note(self, column: str, row: str, text: str) -> None:
        self.recorder.note(column, row, text)

    def length(self, v: str) -> int:
        """How often a loop runs at most: once for each coordinate, or for each block of them."""
        return -(-self.region.sizes[v] // self.tiling.blocks.get(v, 1))

    def lift(self, port: Port, ctx: Context, depth: int, column: str) -> Port:
        """Repeat a stream into the loops it lacks, by the final coordinate stream of each (L1)."""
        for v, crd in ctx[self.cells.depth(port) : depth]:
            source = port
            (port,) = self.cells.put(Repeat(f"rep_{v}", (source, crd)))
            self.note(column, v, f"Rep({self.cells.text(source)} by {self.cells.text(crd)})")
        return port

    # One nest ----------------------------------------------------------------------------------------------------------------

    def nest(self, node: Reduction, ctx: Context, env: Env) -> Bundle:
        """Run the loops of `node` that the context has not run, once for all that need it where everything stands the same."""
        if node not in self.below:
            self.below[node] = tuple(n for n in nodes(node.body) if isinstance(n, View | Reduction))
        key = node, ctx, tuple(env.get(n) for n in self.below[node])
        if key not in self.nests:
            self.nests[key] = self.run(node, ctx, dict(env))
        return self.nests[key]

    def run(self, node: Reduction, ctx: Context, env: Env) -> Bundle:
        entry = len(ctx)
        done = {v for v, _ in ctx}
        loops = sorted({*node.free, *node.over} - done, key=self.place.__getitem__)
        self.reopen(node.body, loops, env)
        full = self.full_loops(node, loops)
        for v in loops:
            self.complete(node.body, ctx, env, v)
            self.recorder.begin(f"{node.label}: loop {v}")
            tree, scanned = self.join_tree(node.body, v, ctx, env)
            if v in full and not isinstance(tree, Total):
                tree = Total((tree,))
            crd, moved = self.joiner(node.body, v, ctx, env, scanned).run(tree)
            ctx = (*ctx, (v, crd))
            self.step(node.body, v, scanned, moved, ctx, env)
        self.complete(node.body, ctx, env, None)
        self.recorder.begin(f"{node.label}: values")
        value, nullable = self.value(node, ctx, env)
        value = self.lift(value, ctx, len(ctx), node.label)
        if nullable:
            value = self.copy(value, self.region.fill[node.body])
        self.evaluations[Evaluation(node, value, tuple(v for v, _ in ctx[:entry]))] = None
        if node.over:
            self.recorder.begin(f"{node.label}: {node.op} over {', '.join(node.over)}")
        levels, value = self.fold(node, ctx, value)
        self.note(node.label, "val", self.cells.text(value))
        return Bundle(levels[entry:], value)

    def full_loops(self, node: Reduction, loops: list[str]) -> set[str]:
        """Where absent entries count (the body's implicit value is not the reducer's identity), the first reduced loop and every
        loop inside it must be total (L8)."""
        if not node.over or self.region.fill[node.body] == REDUCERS[node.op].identity:
            return set()
        first = min(self.place[v] for v in node.over)
        return {v for v in loops if self.place[v] >= first}

    def fold(self, node: Reduction, ctx: Context, value: Port) -> tuple[Context, Port]:
        """Reduce the values over the nest's reduced loops, innermost first (L7). Returns the levels that are left."""
        levels = list(ctx)
        for p in range(len(ctx) - 1, -1, -1):
            v = ctx[p][0]
            if v not in node.over:
                continue
            below = len(levels) - 1 - p
            if below == 0:
                (value,) = self.cells.put(Reduce(f"red_{v}", (value,), node.op))
                self.note(node.label, v, f"Red_{node.op} = {self.cells.text(value)}")
            else:
                inputs = (*(crd for _, crd in levels[p:]), value)
                *crds, value = self.cells.put(Accumulate(f"acc_{v}", inputs, node.op, below))
                levels[p + 1 :] = [(w, crd) for (w, _), crd in zip(levels[p + 1 :], crds, strict=True)]
                for w, crd in levels[p + 1 :]:
                    self.note(node.label, w, f"Acc{below}_{v}[{self.cells.text(crd)}]")
            del levels[p]
        return tuple(levels), value

    # When reductions are completed ---------------------------------------------------------------------------------------------

    def complete(self, body: Tree, ctx: Context, env: Env, v: str | None) -> None:
        """Complete every reduction that must be finished before loop `v` (None: all), producers first. One inside another that is
        itself due belongs to that one's nest."""
        for node in self.due(body, ctx, env, v):
            env[node] = self.nest(node, ctx, env)

    def due(self, body: Tree, ctx: Context, env: Env, v: str | None) -> list[Reduction]:
        """A reduction is due at one of its own loops once a reduction index lies at or before it, and at a loop it lacks only when
        it is a plain value by then. Otherwise it is carried: it runs again inside that loop (L4)."""
        done = {w for w, _ in ctx}

        def ready(node: Reduction) -> bool:
            if v is None:
                return True
            own = v in node.free or v in node.over
            return any(self.place[r] <= self.place[v] for r in node.over) and (own or set(node.free) <= done)

        if not any(isinstance(n, Reduction) and n not in env and ready(n) for n in self.reach((body,), env)):
            return []

        def below(node: Tree) -> tuple[Tree, ...]:
            inside = isinstance(node, Reduction) and (node in env or ready(node))
            return () if inside else children(node)

        return [n for n in nodes(body, below=below) if isinstance(n, Reduction) and n not in env and ready(n)]

    def reopen(self, body: Tree, loops: list[str], env: Env) -> None:
        """A bundle cannot be repeated as a whole: where this nest has a loop that the bundle lacks, outside one of its remaining
        levels, the producer is instantiated again inside this nest (L6)."""
        for node in self.reach((body,), env):
            bundle = env.get(node)
            if not isinstance(node, Reduction) or not isinstance(bundle, Bundle):
                continue
            left = bundle.indices
            enclosed = [v for v in loops if v not in left and any(self.place[w] > self.place[v] for w in left)]
            if not enclosed:
                continue
            if not bundle.whole:
                raise self.enclosed(node, enclosed[0], left[0])
            del env[node]

    def enclosed(self, node: Reduction, loop: str, level: str) -> FusionError:
        return FusionError(
            f"order {','.join(self.region.order)} of region `{self.region.name}` reads {node} inside loop {loop}, which it lacks, "
            f"between two of its levels: {level} is still to come, and its reduction over {','.join(node.over)} lies outside",
            hint=f"put loop {loop} outside every index of {node.label}, or inside all of them",
        )

    def reach(self, trees: tuple[Tree, ...], env: Env) -> tuple[Tree, ...]:
        """Nodes below some trees, producers first, not looking inside completed reductions."""
        completed = frozenset(n for n in env if isinstance(n, Reduction))
        if (trees, completed) not in self.reached:
            self.reached[trees, completed] = nodes(*trees, below=lambda n: () if n in completed else children(n))
        return self.reached[trees, completed]

    # One loop ------------------------------------------------------------------------------------------------------------------

    def join_tree(self, body: Tree, v: str, ctx: Context, env: Env) -> tuple[JoinTree, dict[View, Port]]:
        """The join tree of `body` at loop `v`, and the reference stream of every view that was scanned for it."""
        trees: dict[Tree, JoinTree] = {}
        scanned: dict[View, Port] = {}
        for node in self.reach((body,), env):
            match node:
                case View():
                    trees[node] = self.view_tree(node, v, ctx, env, scanned)
                case Number():
                    trees[node] = Total()
                case Reduction():
                    bundle = env.get(node)
                    trees[node] = self.bundle_tree(node, bundle, v) if isinstance(bundle, Bundle) else trees[node.body]
                case Op():
                    pairs = zip(node.args, self.fixes(node), strict=True)
                    trees[node] = combine([(trees[a], fixes) for a, fixes in pairs if not isinstance(a, Number)])
                case unknown:
                    assert_never(unknown)
        return trees[body], scanned

    def fixes(self, node: Op) -> tuple[bool, ...]:
        if node not in self.fixing:
            self.fixing[node] = tuple(annihilated(node, k, self.region.fill) is not None for k in range(len(node.args)))
        return self.fixing[node]

    def view_tree(self, view: View, v: str, ctx: Context, env: Env, scanned: dict[View, Port]) -> JoinTree:
        levels = self.levels(view)
        here = next((p for p, (w, _) in enumerate(levels) if w == v), None)
        if here is None:
            return Total()
        leaf = self.leaf(view, env)
        full, reached = levels[here][1], here == leaf.level
        if full and not (reached and (leaf.nullable or not self.region.locate)):
            return Total()  # a dense level is located
        if here != leaf.level:
            order = ",".join(self.region.order)
            raise FusionError(
                f"order {order} of region `{self.region.name}` reaches {v} of {view} before the levels stored above it"
            )
        crd, ref = self.scan(view, here, v, ctx, leaf)
        scanned[view] = ref
        return Side(crd, (ref,))

    def bundle_tree(self, node: Reduction, bundle: Bundle, v: str) -> JoinTree:
        if v not in bundle.indices:
            return Total()
        if bundle.indices[0] != v:
            raise self.enclosed(node, v, bundle.indices[0])
        return Side(bundle.levels[0][1], (bundle.value,) if len(bundle.levels) == 1 else ())

    def joiner(self, body: Tree, v: str, ctx: Context, env: Env, scanned: dict[View, Port]) -> Joiner:
        driver = lambda: self.driver(body, v, ctx, env, scanned)  # noqa: E731
        return Joiner(self.cells, v, driver, lambda text: self.note("join", v, text))

    def driver(self, body: Tree, v: str, ctx: Context, env: Env, scanned: dict[View, Port]) -> tuple[Port, Mapping[Port, Moved]]:
        """Who enumerates a total loop: the dense level of a view that stands there, else a bare range."""
        for node in self.reach((body,), env):
            if isinstance(node, View) and v in node.indices:
                levels, leaf = self.levels(node), self.leaf(node, env)
                if leaf.level < len(levels) and levels[leaf.level] == (v, True) and not leaf.nullable:
                    crd, scanned[node] = self.scan(node, leaf.level, v, ctx, leaf)
                    return crd, {scanned[node]: Moved(scanned[node])}
        return self.everywhere(v, ctx), {}

    def everywhere(self, v: str, ctx: Context) -> Port:
        ref = self.lift(self.root, ctx, len(ctx), "range")
        return self.cells.level(Range(f"range_{v}", (ref,), self.length(v)), v)[0]

    def scan(self, view: View, level: int, v: str, ctx: Context, leaf: Leaf) -> tuple[Port, Port]:
        ref = self.lift(leaf.port, ctx, len(ctx), str(view))
        crd, below = self.cells.level(Scan(f"{view.tensor}_{v}", (ref,), view.tensor, level), v)
        return crd, below

    def step(self, body: Tree, v: str, scanned: dict[View, Port], moved: Mapping[Port, Moved], ctx: Context, env: Env) -> None:
        """Advance every view and bundle of the nest past loop `v`, the last of `ctx`."""
        for node in self.reach((body,), env):
            if isinstance(node, View) and v in node.indices:
                env[node] = self.step_view(node, v, scanned, moved, ctx, env)
            elif isinstance(node, Reduction) and isinstance(bundle := env.get(node), Bundle) and bundle.levels:
                env[node] = self.step_bundle(node, bundle, v, moved, ctx)

    def step_view(
        self, view: View, v: str, scanned: dict[View, Port], moved: Mapping[Port, Moved], ctx: Context, env: Env
    ) -> Leaf:
        levels, leaf, crd = self.levels(view), self.leaf(view, env), ctx[-1][1]
        port, level, nullable, waiting = leaf.port, leaf.level, leaf.nullable, dict(leaf.waiting)
        ref = scanned.get(view)
        if ref is not None:
            port, level, nullable = moved[ref].port, level + 1, moved[ref].nullable
            self.note(str(view), v, f"LS = {self.cells.text(ref)}")
        else:
            waiting[v] = crd
        while level < len(levels) and levels[level][1] and levels[level][0] in waiting:
            port = self.locate(view, level, waiting.pop(levels[level][0]), port, v, ctx)
            level += 1
        return Leaf(port, level, nullable, tuple(waiting.items()))

    def locate(self, view: View, level: int, crd: Port, ref: Port, v: str, ctx: Context) -> Port:
        depth = max(self.cells.depth(ref), self.cells.depth(crd))
        pair = (self.lift(crd, ctx, depth, str(view)), self.lift(ref, ctx, depth, str(view)))
        index = self.levels(view)[level][0]
        (port,) = self.cells.put(Locate(f"{view.tensor}_{index}.loc", pair, view.tensor, level))
        shown = ", ".join(self.cells.text(p) for p in pair)
        self.note(str(view), v, f"Loc({shown}) = {self.cells.text(port)}")
        return port

    def step_bundle(self, node: Reduction, bundle: Bundle, v: str, moved: Mapping[Port, Moved], ctx: Context) -> Bundle:
        (index, old), *rest = bundle.levels
        if index != v:
            raise self.enclosed(node, v, index)
        crd = ctx[-1][1]
        if not rest:
            value = moved[bundle.value]
            self.note(node.label, v, self.cells.text(old))
            return Bundle((), value.port, value.nullable, whole=False)
        levels = tuple((w, self.align(node.label, old, crd, c, w)) for w, c in rest)
        return Bundle(levels, self.align(node.label, old, crd, bundle.value, "val"), bundle.nullable, whole=False)

    def align(self, column: str, old: Port, new: Port, stream: Port, row: str) -> Port:
        """Carry a stream below `old` to the coordinates of `new` (L5)."""
        if old == new:
            return stream
        (out,) = self.cells.put(Align(f"align_{row}", (old, new, stream)))
        texts = [self.cells.text(p) for p in (stream, old, new, out)]
        self.note(column, row, "Align({}: {} -> {}) = {}".format(*texts))
        return out

    # Values --------------------------------------------------------------------------------------------------------------------

    def value(self, node: Reduction, ctx: Context, env: Env) -> tuple[Port, bool]:
        """The value stream that the loops of `node` fold, at the depth of its own indices, and whether it may hold `N`. What its tiles
        have of the reduced indices is folded by now."""
        plan = self.tiling.contractions.get(node)
        ports = self.values((node.body,) if plan is None else plan.operands, ctx, env)
        if plan is not None:
            value = self.arithmetic.contract(node, plan, {n: port for n, (port, _) in ports.items()}, ctx)
            self.evaluated(node.body, value, ctx)
            return value, False
        port, nullable = ports[node.body]
        value = self.arithmetic.fold(node.op, node.over, self.arithmetic.term(node.body, port), ctx)
        return value, nullable and value == port

    def values(self, trees: tuple[Tree, ...], ctx: Context, env: Env) -> dict[Tree, tuple[Port, bool]]:
        """The same of some trees and all that is below them."""
        memo: dict[Tree, tuple[Port, bool]] = {}
        for node in self.reach(trees, env):
            match node:
                case View():
                    port = self.leaf(node, env).port
                    if self.region.repeat == "reference":
                        port = self.lift(port, ctx, len(ctx), str(node))
                    (value,) = self.cells.put(Load(f"{node.tensor}_val", (port,), node.tensor))
                    self.note(str(node), "val", f"Val({self.cells.text(port)})")
                    memo[node] = value, False
                case Reduction():
                    bundle = env[node]
                    assert isinstance(bundle, Bundle)
                    memo[node] = bundle.value, bundle.nullable
                case Op():
                    terms = [self.arithmetic.term(a, memo[a][0] if a in memo else None) for a in node.args]
                    value = self.arithmetic.apply(node.name, terms, self.arithmetic.axes(node), ctx)
                    self.evaluated(node, value, ctx)
                    memo[node] = value, False
                case Number():
                    pass  # the operator has it as a constant
                case unknown:
                    assert_never(unknown)
        return memo

    def evaluated(self, node: Tree, value: Port, ctx: Context) -> None:
        self.evaluations[Evaluation(node, value, tuple(v for v, _ in ctx[: self.cells.depth(value)]))] = None

    def copy(self, value: Port, fill: float) -> Port:
        """Turn `N` into the implicit value (L9)."""
        return self.cells.put(Alu("copy", (value,), "copy", (Operand(fill),)))[0]

    # Stored tensors ------------------------------------------------------------------------------------------------------------

    def levels(self, view: View) -> tuple[tuple[str, bool], ...]:
        """(index, whether the level is dense) in storage order."""
        format = self.declared[view.tensor].format
        assert format is not None
        return tuple((view.indices[d], level.full) for d, level in zip(format.order, format.levels, strict=True))

    def leaf(self, view: View, env: Env) -> Leaf:
        leaf = env.get(view)
        return leaf if isinstance(leaf, Leaf) else Leaf(self.root)
