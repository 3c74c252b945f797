"""The costs of public primitives: the expected cycles of each region in fuseflow's own primitives and in its public form."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.run.compiled import Compiled


@dataclass(frozen=True, slots=True)
class PrimitivesCost:
    """The expected cycles of a region in fuseflow's own primitives and in its public form. `public` is None if the region has no
    public form: then `private` says why. `notice` says for which values the public form is wrong."""

    region: str
    own: float
    public: float | None
    private: tuple[str, ...] = ()
    notice: str = ""


def explain_primitives(compiled: Compiled) -> tuple[PrimitivesCost, ...]:
    """Return the costs of every region that has a public form, or that should have one and cannot. Empty if the program was not
    compiled to public primitives. Statistics are assumed for tensors without data."""
    estimator = Estimator(assume_unknown=True)
    knowledge = estimator.knowledge(compiled.program, compiled.source.tensors)

    def cycles(region: CompiledRegion) -> float:
        """Return the estimated cycles of a region, and add its results to `knowledge`."""
        (here,) = estimator_regions([region])
        return estimator.region(here, compiled.machine, knowledge).bound.cycles

    costs = []
    for region in compiled.regions:
        own = None if region.own is None else cycles(replace(region, graph=region.own))
        actual = cycles(region)
        if own is not None:
            costs.append(PrimitivesCost(region.name, own, actual, notice=region.selection_notice))
        elif region.private:
            costs.append(PrimitivesCost(region.name, actual, None, region.private))
    return tuple(costs)
