"""What may be decided about a region beside its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from fuseflow.autoscheduler.budget.decision import RegionDecision

Dealing: TypeAlias = Literal["nothing", "regions", "stages"]
"""What is dealt over lanes: nothing, whole regions, or the stages of a region, too."""


@dataclass(frozen=True, slots=True)
class Freedom:
    """What may be decided about a region beside its order: what is dealt over lanes, and whether its FIFOs may be deeper.

    A `quick` choice is made among few lanes.
    """

    dealing: Dealing = "stages"
    depths: bool = True
    quick: bool = False

    def allows(self, decision: RegionDecision, depth: int | None) -> bool:
        """Return whether a decision needs no freedom that is not there. `depth` is that of FIFOs about which nothing is decided."""
        match self.dealing:
            case "nothing":
                lanes = not decision.lanes
            case "regions":
                lanes = not decision.has_stages
            case "stages":
                lanes = True
            case unknown:
                assert_never(unknown)
        return lanes and (self.depths or decision.depth == depth)
