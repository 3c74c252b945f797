"""The end of a run on the reference that the engine does faster."""

from __future__ import annotations


class FiringLimitError(Exception):
    """A run passed its limit of firings."""
