"""Cross-expression fusion: a program and its regions become fused trees with an order of their loops (the paper's Algorithm 1)."""

from fuseflow.fusion.fuse import RegionCost, choose_order, fuse
from fuseflow.fusion.region import Copy, FusedRegion, RegionOutput

__all__ = ["Copy", "FusedRegion", "RegionCost", "RegionOutput", "choose_order", "fuse"]
