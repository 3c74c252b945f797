"""Schedules that choose themselves: partitions and loop orders, ranked by the estimate and confirmed by the simulator."""
