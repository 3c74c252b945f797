"""Schedules: one value that says what is fused, in which order, stored how; and the regions that follow from it."""

from fuseflow.schedule.partition import Region
from fuseflow.schedule.regions import form_regions, region_results
from fuseflow.schedule.schedule import Schedule

__all__ = ["Region", "Schedule", "form_regions", "region_results"]
