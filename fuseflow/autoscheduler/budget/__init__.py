"""Schedules under a budget: the fewest cycles within stated resources, and how far they are from a bound that no schedule beats."""
