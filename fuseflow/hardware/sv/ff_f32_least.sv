// Copyright and licence: Apache-2.0, as the package.
// The smaller of a and b, a if they are equal, and a NaN if one is.
module ff_f32_least (input [31:0] a, input [31:0] b, output [31:0] y);
  wire nan, below, equal;
  ff_f32_order order(a, b, nan, below, equal);
  assign y = nan ? 32'h7fc00000 : below | equal ? a : b;
endmodule
