// Copyright and licence: Apache-2.0, as the package.
// 1 if a is at least b, else 0.
module ff_f32_ge (input [31:0] a, input [31:0] b, output [31:0] y);
  wire nan, below, equal;
  ff_f32_order order(a, b, nan, below, equal);
  wire unused = &{1'b0, equal};
  assign y = ~nan & ~below ? 32'h3f800000 : 32'b0;
endmodule
