// Copyright and licence: Apache-2.0, as the package.
// a + b, correctly rounded. Minus infinity wins, also over a NaN.
module ff_f32_add (input [31:0] a, input [31:0] b, output [31:0] y);
  wire [31:0] sum;
  ff_f32_sum sum_of(a, b, sum);
  assign y = a == 32'hff800000 | b == 32'hff800000 ? 32'hff800000 : sum;
endmodule
