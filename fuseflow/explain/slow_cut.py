"""Notices that a cut of the user is expected to take much longer than another one, and why; and that a simulation takes long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fuseflow.compiler import compile_source
from fuseflow.errors import FuseFlowError
from fuseflow.memory.settings import DramMemory
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    from fuseflow.estimate.program import Estimator

SLOW = 1.5
"""A notice is shown for a cut that is expected to take at least this many times the cycles of no fusion."""

FIRINGS, HBM_FIRINGS = 100_000_000, 20_000_000
"""The firings a second of the engine, without and with HBM2, in order of magnitude: a GCN on Cora and CiteSeer has 89 to 122 and
19 to 21 million, on one of two busy cores."""


def slow_cut_notice(compiled: Compiled, asked: Schedule, stated: Estimator | None = None) -> str:
    """Return a sentence on the cut that a schedule asked for, if it is expected to take `SLOW` times the cycles of no fusion or
    more: how often a result is computed, the cycles that are expected of the best known cut, and what to ask for instead. Else
    return ''. `stated` is an estimator with statistics that the user states: how often a result is computed is not known by these."""
    if asked.leaves_cut or asked.fuse_regions == ("none",) or all(len(region.einsums) < 2 for region in compiled.regions):
        return ""
    from fuseflow.estimate.program import Estimator  # takes long to load, and the best cut does without

    estimator = stated or Estimator(assume_unknown=True)

    def expected(*fuse: str) -> float:
        schedule = replace(asked, fuse_regions=fuse, regions=(), orders=())
        return compile_source(compiled.source, schedule, compiled.machine).estimate(estimator).cycles

    try:
        cycles, unfused = compiled.estimate(estimator).cycles, expected("none")
        if cycles < SLOW * unfused:
            return ""
        best = expected("best")
    except FuseFlowError:  # an operator cannot run alone, or nothing is known of a tensor, so that nothing is expected
        return ""
    states = stated is not None and (stated.assumptions.tensors or stated.assumptions.rates)
    why = "" if states else _recomputation(compiled)
    fused = ", ".join(asked.fuse_regions)
    return (
        f"`fuse: {fused}` is expected to take {cycles:,.0f} cycles{why}; {unfused:,.0f} without fusion, and {best:,.0f} in the best cut "
        "that is known: `--fuse best`"
    )


def _recomputation(compiled: Compiled) -> str:
    """Return words on the result that is computed most often, or ''."""
    from fuseflow.explain.fusion import explain_fusion  # only a slow cut is explained

    producers = explain_fusion(compiled.source, compiled.schedule, compiled.machine).producers
    most = max(producers, key=lambda producer: producer.extra_firings, default=None)
    if most is None or most.times is None or most.times < SLOW:
        return ""
    return f", since each value of `{most.name}` is computed {most.times:,.0f} times"


def long_run_notice(compiled: Compiled) -> str:
    """Return a sentence on a program whose simulation is expected to take more than a minute, and on faster ways, or ''."""
    firings = sum(region.estimate.firings for region in compiled.regions)
    seconds = firings / (HBM_FIRINGS if isinstance(compiled.machine.memory, DramMemory) else FIRINGS)
    if seconds < 60:
        return ""
    return (
        f"the simulation has about {firings:,.0f} firings, which take some {seconds / 60:,.0f} minutes: `fuseflow estimate` takes seconds, "
        "and `--sample 3%` less than a run"
    )
