"""Memory under the simulators: ports, and three models behind them (docs/memory.md).

`mapping`, `timing` and `statistics` need no compiler; `memory` and `models` load it.
"""
