// Copyright and licence: Apache-2.0, as the package.
// The power of 2 of z, which is in units of 2**-32: value * 2**(whole - 31), where value is from 2**31 to 2**32 - 1.
module ff_f32_power_of_2 (input signed [41:0] z, output [31:0] value, output signed [9:0] whole);
  wire signed [43:0] y;
  ff_f32_curve_exp2 #(.T(29)) curve(z[31:29], z[28:0], y);
  wire unused = &{1'b0, y[43:32]};
  assign value = y[31:0];
  assign whole = z[41:32];
endmodule
