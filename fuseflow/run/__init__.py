"""Running a compiled program in a simulator, and what comes out of that."""
