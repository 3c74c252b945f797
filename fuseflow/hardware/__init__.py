"""Circuits: a SAMML graph as guarded firing rules, as CIRCT MLIR and SystemVerilog, equal to the simulator in every cycle."""
