"""Expectations: what the streams of a graph look like on average, from tensor statistics alone."""
