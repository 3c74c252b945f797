"""The autoscheduler chooses partitions and loop orders, which the estimate ranks and the simulator confirms."""
