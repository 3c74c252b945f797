return _on_tiles(node.function, tiles, machine, machine.latency.of(reducer(node.function).unit), machine.reduce_interval)
