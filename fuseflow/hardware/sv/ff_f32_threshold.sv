// Copyright and licence: Apache-2.0, as the package.
// a if its magnitude is at least b, or if it is a NaN; else 0.
module ff_f32_threshold (input [31:0] a, input [31:0] b, output [31:0] y);
  wire nan, below, equal;
  ff_f32_order order({1'b0, a[30:0]}, b, nan, below, equal);
  wire keeps = (&a[30:23] & |a[22:0]) | (|a[30:0] & ~nan & ~below);
  wire unused = &{1'b0, equal};
  ff_f32_number number(keeps ? a : 32'b0, y);
endmodule
