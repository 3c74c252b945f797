"""The rules of machines with `rules: comal`, where the cycles of the public Comal simulator differ from docs/reference/streams.md. Values
are the same.

In that simulator a node has a clock t. To inspect a token sets t to the token's time if that is later, a sent token has the time
t + 1, and a step ends with t + 1. This equals docs/reference/streams.md with L = II = 1 and unbounded FIFOs, where a step is a firing in
cycle t. The differences:

- **End.** The step on `D` costs nothing: a process that sees `D` in cycle t ends at t, and sends `D` at t + 1. Only roots and
  value writers take a cycle for it. A region takes as long as its last process (`run_cycles`).
- **Broadcast.** A stream with several readers passes a node that copies it, so each reader sees its tokens a cycle later. That node does
  not limit the rate (`broadcast_delays`).
- **Scan.** An empty fiber takes one step (`scan`).
- **Repeat** is two processes in series: a signal generator, with one firing a token, and the repeat (`repeat`).
- **Reduce** emits the sum and the stop behind it in one firing (`reduce`). A sum follows every stop, also one that ends a list
  without lists in it. There is no such sum here: its reader takes a firing more (`readers_of_sums`).
- **Accumulate** is one process, inspects all inputs in every step, and emits a whole workspace in one firing (`accumulate`).
- **Drop** of coordinates takes a whole list in one step (`comal_drop`).
- **Write**: some stops cost nothing (`write`).
- **Tiles** come later than stops, which wait for those before them (`process.LaggedOutput`). The interval of a product also separates stops
  (`alu`).

All other rules are as in the other modules. This holds for root, join of all kinds, locate, load and operators on scalars. It
also holds for align, other drops, fork, merge, flatten and split, for which there is no published cycle count to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from fuseflow.firing_rules.context import RuleContext
from fuseflow.firing_rules.expressions import NO, YES
from fuseflow.firing_rules.rules import DONE, Module
from fuseflow.firing_rules.rules import seen_above as levels_above
from fuseflow.float32.operator_precision import folded_function
from fuseflow.ops import reducer
from fuseflow.primitives.pointwise import alu as alu_rules
from fuseflow.primitives.scan import scan as scan_rules
from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, stop
from fuseflow.sim.reference import comal_drop, rule_processes
from fuseflow.sim.reference.node_context import NodeContext, Rule, Written, written_by
from fuseflow.sim.reference.rule_processes import alu_function, elementwise, fold_function, interpret
from fuseflow.sim.reference.timed_process import Fifo, Process, Steps, Wait, await_tokens, make_output
from fuseflow.sim.reference.token_rules import behind_head
from fuseflow.sim.reference.workspace import Workspace, count_entries, emit_entries, emit_stop, seen_above


def scan(node: n.Scan | n.Range, context: NodeContext) -> Sequence[Process]:
    return interpret(node, context, _scan)


def _scan(node: n.Scan | n.Range, context: RuleContext, m: Module) -> None:
    """Add the rules of a scan to the module `m`: the firing that closes an empty fiber takes its reference, too."""
    scan_rules(node, context, m)
    ref, behind, outs = m.inputs["in0"], behind_head(m, "in0"), tuple(m.outputs)
    (empty,) = (rule for rule in m.rules if rule.label == "empty")
    m.rules.remove(empty)
    merged, alone = ({out: m.stop(out, 0, high) for out in outs} for high in (behind.high + 1, 0))
    m.rule("empty with", empty.when & behind.is_stop, [ref, behind], gives=merged, closes=True)
    m.rule("empty", empty.when & ~behind.is_stop, [ref], [behind], gives=alone, closes=True)


def alu(node: n.Alu, context: NodeContext) -> Sequence[Process]:
    processes = (
        context.process(elementwise, alu_function(node, context), _alu_of_sums)
        if context.sums
        else rule_processes.alu(node, context)
    )
    for process in processes:
        process.pause = process.interval
    return processes


def _alu_of_sums(node: Any, context: RuleContext, m: Module) -> None:
    """Add the rules of an operator on sums to the module `m`: a firing more follows a stop that is not behind a value."""
    alu_rules(node, context, m)
    due, behind = m.register("due", 1), m.register("behind", 1)
    m.rules = [
        replace(rule, when=~due & rule.when, sets=(("behind", ~control), ("due", control & ~behind)))
        for rule, control in zip(m.rules, (YES, NO), strict=True)
    ]
    m.rule("follows", due, sets={"due": 0}, closes=True)


def repeat(node: n.Repeat, context: NodeContext) -> Sequence[Process]:
    x, signal = context.inputs
    link = Fifo(signal.edge)
    generator = Process(node, (signal,), (make_output(context.latency, (link,)),), context.interval)
    generator.steps = elementwise(generator, None, _generate)
    processes = interpret(node, replace(context, inputs=(x, link)), _repeat)
    link.writer = generator
    return generator, *processes


def _generate(node: Any, context: RuleContext, m: Module) -> None:
    """Add the rule of the signal generator to the module `m`: one firing for each token, which it passes on."""
    source, (out,) = context.input(m, 0), context.outputs(m)
    m.rule("passes", YES, [source], gives={out: source.token})


def _repeat(node: n.Repeat, context: RuleContext, m: Module) -> None:
    """Add the rules of a repeat to the module `m`. Every firing inspects x, and takes a token of the signal. A stop takes the
    repeated token of x, if it has a fiber, and the stop behind it if the stop closes more. It inspects the next token of x in any
    case."""
    (x, signal), (out,) = context.inputs(m), context.outputs(m)
    behind, above = behind_head(m, x.name), levels_above(signal.low, signal.high, 1)
    fiber, more, stop_ = signal.is_stop & signal.low.is_(0), signal.high.is_not(0), {out: signal.token}
    ends, outer = ~x.control & ~behind.is_stop, x.holds_stop(*above)
    m.rule("value", ~signal.control, [signal], [x], gives={out: x.token}, expects=~x.control)
    m.rule("stop", fiber & ~more, [x, signal], [behind], gives=stop_, closes=True, expects=ends)
    both = ~x.control & behind.holds_stop(*above)
    m.rule("stop of both", fiber & more, [x, behind, signal], gives=stop_, closes=True, expects=both)
    m.rule("outer stop", signal.is_stop & signal.low.is_not(0), [x, signal], gives=stop_, closes=True, expects=outer)
    m.rule("done", signal.is_done, [signal, x], gives={out: m.mark(out, DONE)}, closes=True)


def reduce(node: n.Reduce, context: NodeContext) -> Sequence[Process]:
    return interpret(node, context, _reduce_of_sums if context.sums else _reduce)


def _reduce(node: n.Reduce, context: RuleContext, m: Module) -> None:
    """Add the rules of a reduction: the stop that ends a fiber emits the fold and, if it closes more, a stop at once."""
    x, (out,) = context.input(m, 0), context.outputs(m)
    fold, ends, more = context.fold(m, node.function, x.payload), x.is_stop & x.low.is_(0), x.high.is_not(0)
    total, stop_ = {out: m.value(out, fold.total)}, {out: m.stop(out, *levels_above(x.low, x.high, 1))}
    m.rule("value", ~x.control, [x], sets=fold.begun, refuses=x)
    m.rule("stop", x.is_stop & x.low.is_not(0), [x], gives=stop_, closes=True)
    m.rule("done", x.is_done, [x], gives={out: m.mark(out, DONE)}, closes=True)
    m.rule("fold", ends & ~more, [x], gives=total, sets=fold.emptied, closes=True)
    m.rule("fold and stop", ends & more, [x], gives=total, sets=fold.emptied, closes=True)
    m.rules[-1] = replace(m.rules[-1], gives=(*total.items(), *stop_.items()))


def _reduce_of_sums(node: n.Reduce, context: RuleContext, m: Module) -> None:
    """Add the rules of a reduction of sums to the module `m`: a stop that is not behind a value costs another firing first."""
    _reduce(node, context, m)
    x, behind, looked = context.input(m, 0), m.register("behind", 1), m.register("looked", 1)
    looks = x.is_stop & ~behind & ~looked
    after = ("behind", ~x.is_stop), ("looked", NO)
    m.rules = [replace(rule, when=~looks & rule.when, sets=(*rule.sets, *after)) for rule in m.rules]
    m.rule("looks", looks, looks=[x], sets={"looked": 1}, closes=True)


def accumulate(node: n.Accumulate, context: NodeContext) -> Sequence[Process]:
    process = Process(node, context.inputs, context.outputs, context.interval)
    burst = _Burst(node, (), context.outputs, context.interval)
    fold = fold_function(reducer(node.function), context)
    process.steps = _Accumulation(process, burst, fold, folded_function(context.arithmetic)).steps()
    return [process]


class _Burst(Process):
    """A process that emits all entries of a workspace in a single firing, in cycle `at`."""

    at = 0

    def fire(self, visible: int, free: int = 0) -> int:
        return self.at

    close = fire


class _Accumulation:
    """The steps of an accumulate. Every firing inspects the next token of every input, and takes one of these:

    - a value, with its coordinate;
    - a stop of the values, with the stop of their coordinates, and the outer coordinate whose list ends;
    - a stop of a stream between, with the outer coordinate whose list ends;
    - a stop of the reduced coordinates. It emits all folded values, with the stop behind them, as tokens of one time.

    The last of these also takes the stops of the inner streams for the next group of reduced coordinates, if it is empty. Then it
    inspects the next reduced coordinate, too, which may delay the next firing.
    """

    def __init__(self, process: Process, burst: _Burst, fold: Callable[[Any, Any], Any], folded: Callable[[Any], Any]) -> None:
        self.process, self.burst, self.fold, self.folded = process, burst, fold, folded
        *self.outer, self.crd, self.val = process.inputs
        self.depth = len(self.outer)
        self.work: Workspace = {}
        process.most_held = 0

    def steps(self) -> Steps:
        p, val = self.process, self.val
        while True:
            visible = yield from await_tokens(0, p.inputs)
            token = val[0][0]
            if token is N:
                raise p.refused()
            if token is D:
                t = p.close(visible)
                for fifo in p.inputs:
                    p.take(fifo, D, t)
                for out in p.outputs:
                    out.push(D, t)
                return
            if token.__class__ is Stop:
                yield from self.stop(token, visible)
            else:
                self.put(token, p.fire(visible))

    def put(self, value: Any, t: int) -> None:
        """Fold a value into the workspace entry of its coordinates, in the firing in cycle t."""
        _, *above, key = (self.coordinate(fifo) for fifo in (*self.outer, self.crd))
        row = self.work.setdefault(tuple(above), {})
        row[key] = self.fold(row[key], value) if key in row else value
        self.crd.take(t)
        self.val.take(t)

    def stop(self, token: Stop, visible: int) -> Steps:
        """Take a stop of the values, and then one by one the stops of the outer streams whose lists it ends."""
        p, level = self.process, self.depth - token.low - 1  # of the coordinate whose list ends
        empty = level < 0
        if not empty:
            t = p.close(visible)
            self.take_inner(token, t)
            self.take_coordinate(level, t)
        while level > max(self.depth - token.high - 1, 0):
            t = p.close((yield from await_tokens(0, p.inputs)))
            self.take_outer(level, token, t)
            level -= 1
            self.take_coordinate(level, t)
        following: Stop | None = token if token.high >= self.depth else None
        while following is not None:
            following = yield from self.flush(following, empty)
            empty = False

    def flush(self, token: Stop, empty: bool) -> Generator[Wait, None, Stop | None]:
        """Take a stop of the reduced coordinates, and with `empty` also the stops of the inner streams, which were not taken
        before, and emit the workspace. Returns the stop of the next group if that is empty (it is then taken from the inner
        streams), else None."""
        p, work = self.process, self.work
        self.burst.at = t = p.close((yield from await_tokens(0, p.inputs)))
        self.take_outer(0, token, t)
        following = None if empty else self.val[0][0]
        if empty:
            self.take_inner(token, t)
        yield from emit_entries(self.burst, work, t, self.folded)
        end = seen_above(token, 1)
        yield from emit_stop(self.burst, end if token.low > self.depth else stop(0 if work else self.depth - 1, end.high), t)
        count_entries(p, work)
        self.work = {}
        if following.__class__ is not Stop or following.low < self.depth:
            return None
        visible = yield from await_tokens(t, self.outer[:1])
        self.take_inner(following, visible)
        _pass(p, visible + 1)
        return following

    def take_inner(self, token: Stop, t: int) -> None:
        """Take a stop of values and coordinates in cycle t, and those of the streams between if no list is open there."""
        for level in range(max(self.depth - token.low, 1), self.depth):
            self.take_outer(level, token, t)
        self.process.take(self.crd, token, t)
        self.process.take(self.val, token, t)

    def take_outer(self, level: int, token: Stop, t: int) -> None:
        """Take, in cycle t, the stop of the outer stream at `level` whose list the stop `token` of the values ends."""
        self.process.take(self.outer[level], seen_above(token, self.depth - level), t)

    def take_coordinate(self, level: int, t: int) -> None:
        self.coordinate(self.outer[level])
        self.outer[level].take(t)

    def coordinate(self, fifo: Fifo) -> int:
        """Return the coordinate at the head of a FIFO. Raise `SimulationError` if a stop or `D` is there."""
        token = fifo[0][0]
        if token is D or token.__class__ is Stop:
            which = next(k for k, other in enumerate(self.process.inputs) if other is fifo)
            raise self.process.error(f"stream {which} holds {token} where a coordinate is due")
        crd: int = token
        return crd


def write(node: n.WriteLevel | n.WriteValues, context: NodeContext) -> Sequence[Process]:
    is_level = isinstance(node, n.WriteLevel)
    return context.process(_write, written_by(node, context), stops=is_level, sums=not is_level and context.sums)


def _write(p: Process, written: Written, stops: bool, sums: bool) -> Steps:
    """Run a writer. Each value takes a firing, and with `stops` so does a stop behind a value. Other stops are taken without a
    firing, in the first cycle that is no earlier than the stop, and the next token may be taken in the same cycle. If the values
    are `sums`, a stop that is not behind a value first costs a firing."""
    (source,) = p.inputs
    behind = False  # a value
    while True:
        while not source:
            yield source
        token, visible = source[0]
        if token is N:
            raise p.refused()
        if token.__class__ is Stop:
            if sums and not behind:
                p.close(visible)
            source.take(p.close(visible) if stops and behind else _pass(p, visible))
            written.push(token, 0)
        elif token is D:
            source.take(p.close(visible))
            return
        else:
            source.take(p.fire(visible))
            written.push(token, 0)
        behind = token.__class__ is not Stop


def _pass(p: Process, visible: int) -> int:
    """Inspect a token, visible from cycle `visible` on, without a firing. Returns the cycle in which the process continues."""
    if visible > p.after:
        p.starved += visible - p.after
        p.after = p.ready = visible
    return p.after


RULES: dict[type[n.Node], Rule] = {
    n.Scan: scan,
    n.Range: scan,
    n.Alu: alu,
    n.Repeat: repeat,
    n.Reduce: reduce,
    n.Accumulate: accumulate,
    n.Drop: comal_drop.drop,
    n.WriteLevel: write,
    n.WriteValues: write,
}
