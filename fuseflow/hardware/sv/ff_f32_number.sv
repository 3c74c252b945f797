// Copyright and licence: Apache-2.0, as the package.
// The word a, or the one word of a NaN if it is a NaN.
module ff_f32_number (input [31:0] a, output [31:0] y);
  assign y = &a[30:23] & |a[22:0] ? 32'h7fc00000 : a;
endmodule
