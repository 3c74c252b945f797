"""Arithmetic in 32-bit floats, as a circuit computes it: the same bits in Python, in compiled kernels and in SystemVerilog.

Sums, differences, products, quotients and square roots are rounded correctly. For example 0.1 + 0.2, of the floats nearest to these, is
0.30000001192092896. The other functions (`functions.FUNCTIONS`) are computed in integers and are within 1 ulp. Subnormal numbers are
kept. There is one NaN, the word 0x7FC00000. `hardware/sv/ff_f32_NAME.sv` is the circuit of the operator NAME.
"""
