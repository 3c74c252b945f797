"""The events of a run, firing by firing: the cause of each firing, the critical path through them, and a timeline."""
