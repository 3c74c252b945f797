"""The engine: the simulator for real sizes, exact like the reference, many tokens at a time, compiled."""
