"""Faults planted in the compiler, its operators and a simulator, one at a time: what the random programs must find.

Each is a context manager that replaces one function (or row of a table) of the package while it is open.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias
from unittest.mock import patch

from fuseflow import ops
from fuseflow.autoscheduler.autoscheduler import ScheduleChoice
from fuseflow.estimate import graph_counts
from fuseflow.explain import cycles
from fuseflow.firing_rules.expressions import mux
from fuseflow.fusion import inline, region_trees, view_merging
from fuseflow.fusion.region import Copy
from fuseflow.lower import reshape_views as lower_views
from fuseflow.samml import files
from fuseflow.samml.nodes import Operand, Repeat
from fuseflow.sim.reference import rule_processes
from fuseflow.table import builder, join_trees, node_interning, results, views
from fuseflow.tensors import Format, Tensor

FUSE = importlib.import_module("fuseflow.fusion.fuse")  # a function of the package has its name
Plant: TypeAlias = Callable[[], AbstractContextManager[Any]]
FAULTS: dict[str, Plant] = {}
WIDE_FAULTS: dict[str, Plant] = {}
"""Those that only wide programs find, which are asked everything else that a user asks."""


def fault(about: str, among: dict[str, Plant] = FAULTS) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        among[about] = plant
        return plant

    return register


# Joins and what is absent ----------------------------------------------------------------------------------------------------


@fault("a union is lowered as an intersection")
def swapped_join() -> AbstractContextManager[Any]:
    real = join_trees.join_of
    return patch.object(join_trees, "join_of", lambda kind, trees: real("intersect" if kind == "union" else kind, trees))


@fault("implicit values are taken as 0")
def zero_fills() -> AbstractContextManager[Any]:
    real = FUSE.implicit_values
    return patch.object(FUSE, "implicit_values", lambda *given: dict.fromkeys(real(*given), 0.0))


@fault("the implicit value of a producer is taken as 0 where its consumer reads it")
def zero_slots() -> AbstractContextManager[Any]:
    return patch.object(builder, "Operand", lambda value, constant=False: Operand(value if constant else 0.0, constant=constant))


@fault("absent entries never count in a reduction (L8)")
def no_full_loops() -> AbstractContextManager[Any]:
    return patch.object(builder.TableBuilder, "total_loops", lambda self, node, loops: set())


@fault("a payload is not probed again below the join (L3)")
def no_probing() -> AbstractContextManager[Any]:
    return patch.object(join_trees.Joiner, "run", lambda self, tree: self._realize(tree))


@fault("N is not replaced before a reduction (L9)")
def no_copy() -> AbstractContextManager[Any]:
    return patch.object(builder.TableBuilder, "filled", lambda self, value, fill: value)


@fault("the other operand of a subtraction annihilates too")
def wrong_annihilator() -> AbstractContextManager[Any]:
    row = ops.OPERATORS["sub"]
    return patch.dict(ops.OPERATORS, sub=replace(row, annihilators=(*row.annihilators, (1, ops.INF, -ops.INF), (1, 0.0, 0.0))))


# Streams ---------------------------------------------------------------------------------------------------------------------


@fault("streams below a join are not aligned (L5)")
def no_align() -> AbstractContextManager[Any]:
    return patch.object(node_interning.Cells, "align", lambda self, column, row, stream, old, new: stream)


@fault("a value is repeated by every coordinate instead of the final ones (L1)")
@contextmanager
def wrong_repeat() -> Iterator[None]:
    begin, real = builder.TableBuilder.__init__, node_interning.Cells.lift
    builders: dict[int, builder.TableBuilder] = {}  # by their cells, which do not know how long a loop is

    def init(self: Any, region: Any, memo: Any = None) -> None:
        begin(self, region, memo)
        builders[id(self.cells)] = self

    def lift(self: Any, port: Any, loops: Any, depth: int, column: str) -> Any:
        if self.depth(port) < depth:
            v, outer = loops[depth - 1][0], loops[: depth - 1]
            loops = (*outer, (v, builders[id(self)].everywhere(v, outer)))
        return real(self, port, loops, depth, column)

    with patch.object(builder.TableBuilder, "__init__", init), patch.object(node_interning.Cells, "lift", lift):
        yield


@fault("a dense level is located below the root instead of its parent")
def wrong_parent() -> AbstractContextManager[Any]:
    real = views.ViewReader._located

    def located(self: Any, view: Any, level: int, streams: Any, loop: Any) -> Any:
        return real(self, view, level, (streams[0], self.root), loop)

    return patch.object(views.ViewReader, "_located", located)


@fault("equal primitives are recognized without their attributes (L10)")
def careless_cells() -> AbstractContextManager[Any]:
    def key(node: Any, name: str) -> Any:
        return replace(node, name=name) if name or not node.inputs else (type(node), node.inputs)

    return patch.object(node_interning, "replace", key)


# Simulators ------------------------------------------------------------------------------------------------------------------


@fault("a maximum starts from 0")
def wrong_identity() -> AbstractContextManager[Any]:
    real = rule_processes.reducer
    return patch.object(
        rule_processes, "reducer", lambda name: replace(real(name), identity=0.0) if name == "max" else real(name)
    )


@fault("a repeat drops the outermost stop")
def dropped_stop() -> AbstractContextManager[Any]:
    real = rule_processes.FIRING_RULES[Repeat]

    def lower(node: Repeat, context: Any, m: Any) -> None:
        give = m.stop
        m.stop = lambda out, low, high: give(out, low, mux(low < high, high - 1, low))
        real(node, context, m)

    return patch.dict(rule_processes.FIRING_RULES, {Repeat: lower})


# Fusion ----------------------------------------------------------------------------------------------------------------------


@fault("merging captures an index (F4, condition ii)")
def captures() -> AbstractContextManager[Any]:
    beside = lambda fused: {v: set[str]() for v in fused.indices}  # noqa: E731
    return patch.multiple(view_merging, _captures=lambda fused: False, _beside=beside)


@fault("reduction indices are not renamed")
def not_fresh() -> AbstractContextManager[Any]:
    def fresh(self: Any, wanted: str, size: int) -> str:
        self.sizes[wanted] = size
        return wanted

    return patch.object(inline.Inliner, "fresh", fresh)


@fault("equal names of producers are one view at any indices")
def one_view() -> AbstractContextManager[Any]:
    real = inline.Inliner.view

    def view(self: Any, einsum: Any, tensor: str, indices: tuple[str, ...]) -> Any:
        known = next((i for t, i in self._views if t == tensor and sorted(i) == sorted(indices)), indices)
        return real(self, einsum, tensor, known)

    return patch.object(inline.Inliner, "view", view)


@fault("a permuted copy is stored in the order of its source")
def copied_as_it_is() -> AbstractContextManager[Any]:
    return patch.object(Copy, "order", lambda self, loops: tuple(range(len(self.indices))))


@fault("a result is declared with the inverse of its mode order")
def inverse_order() -> AbstractContextManager[Any]:
    def inverse(levels: Any, order: tuple[int, ...]) -> Format:
        return Format(levels, tuple(order.index(d) for d in range(len(order))))

    return patch.object(results, "Format", inverse)


@fault("global iteration moves a sum out of a divisor")
def sum_out_of_divisor() -> AbstractContextManager[Any]:
    return patch.dict(region_trees.LINEAR_OPERANDS, div=(0, 1))


@fault("dropping zeros drops the number 0")
def drops_zero() -> AbstractContextManager[Any]:
    real = results.Drop
    return patch.object(results, "Drop", lambda name, ports, value: real(name, ports, None if value is None else 0.0))


# What is asked beside a run --------------------------------------------------------------------------------------------------


@fault("a tensor that is seen in other dimensions is turned around", WIDE_FAULTS)
def turned_view() -> AbstractContextManager[Any]:
    real = lower_views.regroup_tensor

    def turned(*given: Any) -> Tensor:
        tensor = real(*given)
        return replace(tensor, values=tensor.values[::-1].copy())

    return patch.object(lower_views, "regroup_tensor", turned)


@fault("the estimate counts one value too many that is written", WIDE_FAULTS)
def one_more_written() -> AbstractContextManager[Any]:
    real = graph_counts.elements_written
    return patch.object(graph_counts, "elements_written", lambda *given: {kind: n + 1 for kind, n in real(*given).items()})


@fault("a critical path leaves its shortest step out", WIDE_FAULTS)
def shorter_path() -> AbstractContextManager[Any]:
    real = cycles.find_critical_path

    def shorter(*given: Any) -> Any:
        path = real(*given)
        return replace(path, steps=path.steps[:-1])

    return patch.object(cycles, "find_critical_path", shorter)


@fault("a fibertree is read with its values turned around", WIDE_FAULTS)
def turned_fibertree() -> AbstractContextManager[Any]:
    real = files.read_fibertree

    def turned(*given: Any, **named: Any) -> Tensor:
        tensor = real(*given, **named)
        return replace(tensor, values=tensor.values[::-1].copy())

    return patch.object(files, "read_fibertree", turned)


@fault("`auto` says that it fuses nothing, whatever it chose", WIDE_FAULTS)
def says_unfused() -> AbstractContextManager[Any]:
    unfused = property(lambda choice: replace(choice.compiled.schedule, fuse_regions=("none",), regions=(), orders=()))
    return patch.object(ScheduleChoice, "schedule", unfused)
