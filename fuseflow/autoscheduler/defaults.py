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
ALLOWED = tuple(allowed for allowed in LEVERS.values() if allowed)
"""What a search within a budget decides only if the user allows it."""
