"""What a simulation hands over: outputs, statistics and deadlocks, the same values from every simulator."""
