// Copyright and licence: Apache-2.0, as the package.
// log2(e) * significand * 2**(exponent - 23), in units of 2**-32, rounded down. The exponent is from -25 to 6.
module ff_f32_binary_exponent (input [23:0] significand, input signed [8:0] exponent, output [40:0] z);
  wire [61:0] product = significand * 38'd198282496599;
  wire [5:0] down = 6'd28 - exponent[5:0];
  wire [61:0] shifted = product >> down;
  wire unused = &{1'b0, exponent[8:6], shifted[61:41]};
  assign z = shifted[40:0];
endmodule
