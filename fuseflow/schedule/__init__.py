"""Schedules: a schedule is one value that says what is fused, in which order, and stored how. The regions of a program follow from it."""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.schedule.partition import Region
    from fuseflow.schedule.regions import form_regions, region_results
    from fuseflow.schedule.schedule import Schedule

__all__ = ["Region", "Schedule", "form_regions", "region_results"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
