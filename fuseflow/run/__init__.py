"""A compiled program and its run: every stage of its regions, its artifacts, its results, and their check."""
