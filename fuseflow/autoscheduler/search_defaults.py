"""The defaults of a search."""

DEFAULT_TOP = 3
"""How many of the best candidates by estimate are simulated: of partitions, of orders of each region, of programs within a budget."""
LEVERS = {
    "fusion": "",
    "orders": "",
    "stages": "",
    "lanes": "",
    "depths": "",
    "formats": "formats",
    "association": "reassociate",
    "buffers": "buffers",
    "preloads": "preloads",
}
"""The kinds of decisions, in the order in which they are taken away, each with the name that the user has to allow for it."""
SPLITS = "splits"
"""The name that the user allows so that loops may be split. That is tried last, by simulation, so it is not among the levers."""
PLACES = "places"
"""The name that the user allows so that tensors may be placed in the scratchpad, and regions run in tiles. That is tried by simulation,
too."""
ALLOWED = (*(allowed for allowed in LEVERS.values() if allowed), SPLITS, PLACES)
"""The decisions that a search within a budget makes only if the user allows them."""
