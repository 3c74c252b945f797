"""The memory of the simulators: its ports, and the models behind them (docs/explanation/memory.md).

The modules `mapping`, `timing` and `statistics` need no compiler; `memory` and `models` load it.
"""
