"""The causes of a firing: the event that decided its cycle. If several events decided the cycle, the first of this list counts,
so a node that fires as often as it can waits for no other."""

START, OWN, TOKEN, SLOT, MEMORY, INSIDE = range(6)
"""The causes are, in this order: nothing, in cycle 0; the last firing of the same process; a token; a slot of a full FIFO; an
answer of the memory; another process of the same node."""
