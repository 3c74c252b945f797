"""The error that ends a run on the reference simulator once the engine would be faster."""

from __future__ import annotations


class FiringLimitError(Exception):
    """A run passed its limit of firings."""
