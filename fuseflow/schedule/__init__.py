"""Schedules: a schedule is one value that decides fusion, loop orders and storage. A program's regions follow from it."""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.schedule.partition import Region as Region
    from fuseflow.schedule.regions import form_regions as form_regions
    from fuseflow.schedule.regions import region_results as region_results
    from fuseflow.schedule.schedule import Schedule as Schedule
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
