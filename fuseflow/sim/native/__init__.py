"""Machine code: kernels compiled once and cached on disk, and the records of memory that they share."""
