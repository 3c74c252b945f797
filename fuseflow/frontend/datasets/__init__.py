"""Data sets. Each source has a file here, which returns a `GraphData` or a matrix of scipy."""
