// Copyright and licence: Apache-2.0, as the package.
// a * b, correctly rounded. Zero wins, also over infinities and NaN, and the result is then +0.
module ff_f32_mul (input [31:0] a, input [31:0] b, output [31:0] y);
  wire [31:0] product;
  ff_f32_product times(a, b, product);
  assign y = ~|a[30:0] | ~|b[30:0] ? 32'b0 : product;
endmodule
