"""Join: the sorted merge of the coordinates of several sides."""

from __future__ import annotations

from fuseflow.rules.context import Builder, RuleContext
from fuseflow.rules.expressions import all_of, const, mux
from fuseflow.rules.rules import EMPTY, Module
from fuseflow.samml import nodes as n


def join(node: n.Join, context: RuleContext, m: Module) -> None:
    """One firing is one comparison, at which all heads are visible. There is a rule for each set of sides that may be taken together."""
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


RULES: dict[type[n.Node], Builder] = {n.Join: join}
