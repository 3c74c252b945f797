// Copyright and licence: Apache-2.0, as the package.
// The smaller of a and b, a if they are equal. Minus infinity wins, also over a NaN.
module ff_f32_min (input [31:0] a, input [31:0] b, output [31:0] y);
  wire [31:0] least;
  ff_f32_least smaller(a, b, least);
  assign y = a == 32'hff800000 | b == 32'hff800000 ? 32'hff800000 : least;
endmodule
