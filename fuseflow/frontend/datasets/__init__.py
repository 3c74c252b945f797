"""Data sets: one file for each source, all to a `Graph` or a matrix in scipy arrays."""
