// Copyright and licence: Apache-2.0, as the package.
// 1 if a is above b, else 0.
module ff_f32_gt (input [31:0] a, input [31:0] b, output [31:0] y);
  wire nan, below, equal;
  ff_f32_order order(a, b, nan, below, equal);
  assign y = ~nan & ~below & ~equal ? 32'h3f800000 : 32'b0;
endmodule
