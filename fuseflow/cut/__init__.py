"""Cuts a program into the regions that are expected to take the fewest cycles, if the user does not say what is fused."""
