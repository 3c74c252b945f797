"""Cross-expression fusion: a program and its regions to fused trees with an order of their loops (the paper's Algorithm 1)."""

from fuseflow.fusion.fuse import Cost, choose_order, fuse
from fuseflow.fusion.region import Copy, FusedRegion, RegionOutput

__all__ = ["Copy", "Cost", "FusedRegion", "RegionOutput", "choose_order", "fuse"]
