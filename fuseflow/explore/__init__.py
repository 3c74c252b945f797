"""Design spaces: which schedules there are to compare."""

from fuseflow.explore.space import Axis, Space

__all__ = ["Axis", "Space"]
