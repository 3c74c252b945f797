"""What a search does unless the caller says otherwise."""

DEFAULT_TOP = 3
"""How many of the best candidates by estimate are simulated: of partitions, of orders of each region, of programs within a budget."""
ALLOWED = ("formats",)
"""What a search within a budget decides only if the user allows it."""
