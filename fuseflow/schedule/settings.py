"""The settings of a schedule: the words that each may be."""

KEYWORDS = ("none", "layerwise", "full", "best", "auto")
"""The names that say what is fused in the whole model; no region can be called so."""

SETTINGS = {
    "iteration": ("factored", "global"),
    "locate": ("auto", "always", "never"),
    "rescan": ("auto", "every", "never"),
    "repeat": ("value", "reference"),
    "writers": ("auto", "once", "lanes"),
    "primitives": ("auto", "own", "public"),
    "order_policy": ("best", "first", "auto"),
    "depth_policy": ("machine", "auto"),
    "intermediates": ("real", "dense"),
}
"""The settings that hold for all regions, with their possible values; the first is the default."""
