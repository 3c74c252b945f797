"""What a search does unless the caller says otherwise."""

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
"""The kinds of decisions, in the order in which they are taken away, each with what the user has to allow for it."""
SPLITS = "splits"
"""What the user allows so that loops may be split. That is tried last, by simulation, so it is not among the levers."""
ALLOWED = (*(allowed for allowed in LEVERS.values() if allowed), SPLITS)
"""What a search within a budget decides only if the user allows it."""
