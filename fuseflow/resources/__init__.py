"""The resources that a graph takes on an accelerator: arithmetic lanes, ports of the memory, stream units, and bytes on the chip.

`amounts` has the vector of resources, and `graph_resources` counts the resources of a graph.
"""

from fuseflow.resources.amounts import COMPONENTS, Resources
from fuseflow.resources.graph_resources import HeldEntries, arithmetic_lanes, graph_resources

__all__ = ["COMPONENTS", "HeldEntries", "Resources", "arithmetic_lanes", "graph_resources"]
