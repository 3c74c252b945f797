prefetches: Entries[int] = ()
"""The lines of a tensor that are read ahead."""
