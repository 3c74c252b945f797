"""The resources that a graph takes on an accelerator: arithmetic lanes, ports of the memory, stream units, and bytes on the chip."""

from fuseflow.resources.graph_resources import COMPONENTS, HeldEntries, Resources, arithmetic_lanes, graph_resources

__all__ = ["COMPONENTS", "HeldEntries", "Resources", "arithmetic_lanes", "graph_resources"]
