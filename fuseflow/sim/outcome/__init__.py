"""The results of a simulation, which are the same values from every simulator: outputs, statistics and deadlocks."""
