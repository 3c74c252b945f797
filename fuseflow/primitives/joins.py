"""The primitives that bring coordinates together or take them apart: join, align, drop, flatten and split."""

from __future__ import annotations

from fuseflow.firing_rules.context import Builder, RuleContext
from fuseflow.firing_rules.expressions import Expr, all_of, const, mux
from fuseflow.firing_rules.nested_streams import EnclosingStreams, Opening, nested_stop
from fuseflow.firing_rules.rules import DONE, EMPTY, Head, Module, seen_above
from fuseflow.samml import nodes as n

COMPARING, CARRYING, LOSING = range(3)
"""The states of an align: it compares coordinates, carries a subtree, or takes one that has no place."""


def join(node: n.Join, context: RuleContext, m: Module) -> None:
    """The sorted merge of several sides. One firing is one comparison, at which all heads are visible. There is a rule for each set of
    sides that may be taken together."""
    heads, sides = context.inputs(m), node.sides()
    crd_out, *payload_outs = context.outputs(m)
    out_of = dict(zip((payload for _, payloads in sides for payload in payloads), payload_outs, strict=True))
    least = m.least([heads[crd].place for crd, _ in sides])
    here = [heads[crd].place.is_(least) & ~heads[crd].control for crd, _ in sides]
    ended = all_of(heads[crd].control for crd, _ in sides)
    passed = {crd_out: m.passed(crd_out, heads[0])} | {out: m.passed(out, heads[k]) for k, out in out_of.items()}
    same = all_of(head.same_control(heads[0]) for head in heads[1:])
    m.rule("control", ended, heads, gives=passed, closes=True, expects=same)
    wanted = {"union": const(1, 1), "left": here[0], "intersect": all_of(here)}[node.kind]
    gives = {crd_out: m.value(crd_out, least.bits(0, heads[0].width))}
    for (_, payloads), there in zip(sides, here, strict=True):
        for k in payloads:
            gives[out_of[k]] = mux(there, heads[k].token, m.mark(out_of[k], EMPTY))
    for chosen in range(1, 1 << len(sides)):
        is_chosen = [bool(chosen >> s & 1) for s in range(len(sides))]
        taken = [heads[k] for (crd, payloads), yes in zip(sides, is_chosen, strict=True) if yes for k in (crd, *payloads)]
        looked = [head for head in heads if head not in taken]
        these = ~ended & all_of(there if yes else ~there for there, yes in zip(here, is_chosen, strict=True))
        name = " ".join(str(s) for s, yes in enumerate(is_chosen) if yes)
        m.rule(f"gives {name}", these & wanted, taken, looked, gives=gives)
        m.rule(f"skips {name}", these & ~wanted, taken, looked)


def align(node: n.Align, context: RuleContext, m: Module) -> None:
    """Subtrees are carried from old coordinates to new ones. A stop that ends the last subtree in the output is `held` until the next
    coordinate of `new` is seen; `low` is its lowest level. `empty`: there was no coordinate of `old` since the last stop."""
    levels = context.types[2].depth - context.types[0].depth
    old, new, x = context.inputs(m)
    (out,) = context.outputs(m)
    m.register("state", 2), m.register("held", 1), m.register("low", m.level_bits), m.register("empty", 1, 1)
    _compare_coordinates(m, out, old, new, levels)
    _end_of_coordinates(m, out, old, new, x, levels)
    _carry(m, out, x, levels)


def _compare_coordinates(m: Module, out: str, old: Head, new: Head, levels: int) -> None:
    comparing = m.register("state", 2).is_(COMPARING) & ~(old.control & new.control)
    held, low = m.register("held", 1), m.register("low", m.level_bits)
    dropped = new.control | (~old.control & (old.payload < new.payload))
    fresh = ~dropped & (old.control | (new.payload < old.payload))
    stop = {out: m.stop(out, low, levels - 1)}
    lost, carried = {"state": LOSING, "empty": 0}, {"state": CARRYING, "empty": 0, "held": 0}
    for pending in (False, True):
        due = comparing & (held & ~new.control if pending else ~held | new.control)
        gives, after = (stop, {"held": 0}) if pending else ({}, {})
        name = " behind a subtree" if pending else ""
        m.rule(f"loses{name}", due & dropped, [old], [new], gives=gives, sets={**lost, **after}, expects=~new.is_done)
        m.rule(f"new{name}", due & fresh, [new], [old], gives=gives, sets={"held": 1, "low": levels - 1})
        m.rule(f"carries{name}", due & ~dropped & ~fresh, [old, new], gives=gives, sets=carried)


def _end_of_coordinates(m: Module, out: str, old: Head, new: Head, x: Head, levels: int) -> None:
    comparing, empty = m.register("state", 2).is_(COMPARING), m.register("empty", 1, 1)
    held, low = m.register("held", 1), m.register("low", m.level_bits)
    stop = m.stop(out, mux(held, low, new.low + levels), new.high + levels)
    gives = {out: mux(new.is_done, m.mark(out, DONE), stop)}
    ends = comparing & old.control & new.control
    same, sets = old.same_control(new), {"held": 0, "empty": 1}
    below = (new.is_done & x.is_done) | (new.is_stop & x.holds_stop(new.low + levels, new.high + levels))
    for without, heads, expects in ((empty, [old, new, x], same & below), (~empty, [old, new], same)):
        m.rule(f"end of {len(heads)}", ends & without, heads, gives=gives, sets=sets, closes=True, expects=expects)


def _carry(m: Module, out: str, x: Head, levels: int) -> None:
    state, low = m.register("state", 2), m.register("low", m.level_bits)
    end = x.is_stop & ~(x.high < levels - 1)
    for name, here, gives in (("carried", state.is_(CARRYING), {out: m.passed(out, x)}), ("lost", state.is_(LOSING), {})):
        m.rule(f"{name} value", here & ~x.control, [x], gives=gives)
        m.rule(f"{name} stop", here & x.is_stop & ~end, [x], gives=gives, closes=True)
    carried = state.is_(CARRYING)
    after = {"state": const(COMPARING, 2), "held": m.register("held", 1) | carried, "low": mux(carried, x.low, low)}
    m.rule("end of subtree", state.is_not(COMPARING) & end, [x], sets=after, closes=True)


def drop(node: n.Drop, context: RuleContext, m: Module) -> None:
    """Entries are left out, and with them the coordinates below which nothing is left. `emitted` open coordinates were given. `held` is
    the level up to which a stop is held, plus 1, and 0 if none is. `kept` says that the list of the outermost coordinates has a kept
    value."""
    *outer, crd, val = context.inputs(m)
    nest = EnclosingStreams(m, outer)
    m.register("emitted", nest.open.width), m.register("held", m.level_bits + 1), m.register("kept", 1)
    gone = val.is_empty
    if node.value is not None:
        gone = gone | (val.is_value & context.holds(context.apply("eq", val.payload, context.number(node.value))))
    outs = context.outputs(m)
    _drop_values(m, nest, crd, val, gone, outs)
    _drop_stops(m, nest, crd, val, outs)
    done, expects = {out: m.mark(out, DONE) for out in outs}, nest.are_done
    m.rule("done", val.is_done, [*outer, crd, val], gives=done, closes=True, expects=expects)


def _drop_values(m: Module, nest: EnclosingStreams, crd: Head, val: Head, gone: Expr, outs: list[str]) -> None:
    held, value = m.register("held", m.level_bits + 1), ~val.control
    for opening in nest.openings():
        leaves = value & gone & opening.when
        heads, expects = [val, crd, *opening.heads], opening.expects & ~crd.control
        m.rule(f"leaves {opening.label}", leaves, heads, sets=opening.sets, expects=expects)
        stays = value & ~gone & held.is_(0) & opening.when
        for emitted in range(opening.first + 1):
            _keep_value(m, nest, opening, emitted, stays, crd, val, outs)
    for level in range(nest.depth):  # a stop is held below the outermost coordinates only
        gives = nested_stop(m, outs, const(0, m.level_bits), const(level, m.level_bits), level)
        m.rule(f"held stop {level}", value & ~gone & held.is_(level + 1), looks=[val], gives=gives, sets={"held": 0}, closes=True)


def _keep_value(
    m: Module, nest: EnclosingStreams, opening: Opening, emitted: int, stays: Expr, crd: Head, val: Head, outs: list[str]
) -> None:
    """Add the rule of a value that stays when `emitted` open coordinates were given before: it gives the others, too."""
    tokens = [*(m.value(out, c) for out, c in zip(outs, nest.coordinates(opening), strict=False)), crd.token, val.token]
    gives = dict(list(zip(outs, tokens, strict=True))[emitted:])
    when = stays & m.register("emitted", nest.open.width).is_(emitted)
    after = {**opening.sets, "emitted": nest.depth, "kept": 1}
    heads, expects = [val, crd, *opening.heads], opening.expects & ~crd.control
    m.rule(f"keeps {opening.label} after {emitted}", when, heads, gives=gives, sets=after, expects=expects)


def _drop_stops(m: Module, nest: EnclosingStreams, crd: Head, val: Head, outs: list[str]) -> None:
    depth, due = nest.depth, ~nest.is_childless(val)
    kept, held, emitted = m.register("kept", 1), m.register("held", m.level_bits + 1), m.register("emitted", nest.open.width)
    for opening in nest.childless(val):
        label, expects = f"childless {opening.label}", opening.expects
        m.rule(label, opening.when, opening.heads, [val], sets=opening.sets, expects=expects)
    for end in nest.endings(val):
        open_ = end.still_open
        sets: dict[str, Expr | int] = {"open": open_, "emitted": mux(emitted < open_, emitted, open_)}
        if end.ended == depth:
            low = mux(kept, const(0, m.level_bits), mux(val.low < depth, const(depth, m.level_bits), val.low))
            gives = nested_stop(m, outs, low, val.high, depth)
            sets |= {"held": 0, "kept": 0}
        else:
            gives, level = {}, const(end.ended + 1, held.width)
            sets |= {"held": mux(kept & (held < level), level, held)}
        heads, expects = [val, crd, *end.heads], end.expects & crd.holds_stop(val.low, val.high)
        m.rule(f"stop {end.ended}", due & end.when, heads, gives=gives, sets=sets, closes=True, expects=expects)


def flatten(node: n.Flatten, context: RuleContext, m: Module) -> None:
    outer, inner = context.inputs(m)
    (out,) = context.outputs(m)
    nest = EnclosingStreams(m, [outer])
    for opening in nest.openings():
        (above,) = nest.coordinates(opening)
        value, heads = {out: m.value(out, above * node.size + inner.payload)}, [inner, *opening.heads]
        label, when = f"value {opening.label}", ~inner.control & opening.when
        m.rule(label, when, heads, gives=value, sets=opening.sets, expects=opening.expects)
    for opening in nest.childless(inner):
        label, expects = f"childless {opening.label}", opening.expects
        m.rule(label, opening.when, opening.heads, [inner], sets=opening.sets, expects=expects)
    due = ~nest.is_childless(inner)
    for end in nest.endings(inner):
        gives = {out: m.stop(out, *seen_above(inner.low, inner.high, 1))} if end.ended else {}
        heads, sets = [inner, *end.heads], {"open": end.still_open}
        m.rule(f"stop {end.ended}", due & end.when, heads, gives=gives, sets=sets, closes=True, expects=end.expects)
    done = {out: m.mark(out, DONE)}
    m.rule("done", inner.is_done, [outer, inner], gives=done, closes=True, expects=nest.are_done)


def split(node: n.SplitLevel, context: RuleContext, m: Module) -> None:
    """`open` says that an inner fiber is open, and `current` is its outer coordinate."""
    crd = context.input(m, 0)
    outer, inner = context.outputs(m)
    is_open, current = m.register("open", 1), m.register("current", crd.width)
    above, below = crd.payload // node.size, crd.payload % node.size
    value, same = ~crd.control, current.is_(above)
    low = mux(is_open, const(0, m.level_bits), crd.low + 1)
    stops = {outer: m.passed(outer, crd), inner: m.stop(inner, low, crd.high + 1)}
    m.rule("stop", crd.is_stop, [crd], gives=stops, sets={"open": 0}, closes=True)
    m.rule("done", crd.is_done, [crd], gives={outer: m.mark(outer, DONE), inner: m.mark(inner, DONE)}, closes=True)
    m.rule("next", value & is_open & ~same, looks=[crd], gives={inner: m.stop(inner, 0, 0)}, sets={"open": 0}, closes=True)
    first = {outer: m.value(outer, above), inner: m.value(inner, below)}
    m.rule("first", value & ~is_open, [crd], gives=first, sets={"open": 1, "current": above})
    m.rule("value", value & is_open & same, [crd], gives={inner: m.value(inner, below)})


RULES: dict[type[n.Node], Builder] = {n.Join: join, n.Align: align, n.Drop: drop, n.Flatten: flatten, n.SplitLevel: split}
