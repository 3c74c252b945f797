latency, interval = machine.slowdown * machine.latency.of(unit.latency), 1 if unit.pipelined else machine.interval.of(unit.latency)
