latency, interval = machine.latency.of(unit.latency), machine.reduce_interval if unit.pipelined else machine.interval.of(unit.latency)
