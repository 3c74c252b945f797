"""The resources that a graph takes on an accelerator: arithmetic lanes, ports of the memory, stream units, and bytes on the chip.

`amounts` has the vector, `graph_resources` counts it for a graph, and `simulated` for a graph that was run.
"""

from fuseflow.resources.amounts import COMPONENTS, Resources
from fuseflow.resources.graph_resources import HeldEntries, arithmetic_lanes, graph_resources
from fuseflow.resources.simulated import simulated_resources

__all__ = ["COMPONENTS", "HeldEntries", "Resources", "arithmetic_lanes", "graph_resources", "simulated_resources"]
