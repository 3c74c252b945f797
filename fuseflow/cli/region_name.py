"""The name of a region that a user gives to a command."""

from __future__ import annotations

from fuseflow.errors import UsageError, did_you_mean
from fuseflow.run.compiled import Compiled


def region_number(compiled: Compiled, name: str) -> int:
    """Return the number of the region of this name, counted from 0. Raises `UsageError` with the nearest name if there is none."""
    names = [region.name for region in compiled.regions]
    if name not in names:
        hint = did_you_mean(name, names) or f"the regions are {', '.join(f'`{other}`' for other in names)}"
        raise UsageError(f"there is no region `{name}`", hint=hint)
    return names.index(name)
