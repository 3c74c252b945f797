"""What made a firing as late as it is. Of equal causes the first: a node that fires as often as it can waits for nobody."""

START, OWN, TOKEN, SLOT, MEMORY, INSIDE = range(6)
"""Nothing, in cycle 0; its own firing before; a token; a slot of a full FIFO; an answer of the memory; another part of its node."""
