"""Sweeps of a design space: schedules, data and machines are compared point by point, and the results are kept in a store."""
