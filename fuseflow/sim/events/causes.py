"""The causes of a firing: the event that decided its cycle. Of equal causes the first counts, so a node that fires as often as it
can waits for nobody."""

START, OWN, TOKEN, SLOT, MEMORY, INSIDE = range(6)
"""The causes are, in this order: nothing, in cycle 0; the firing of the process before; a token; a slot of a full FIFO; an answer of the
memory; another process of the same node."""
