// Copyright and licence: Apache-2.0, as the package.
// One step of a sum: a + b, correctly rounded, by the rules of IEEE 754 alone.
module ff_f32_fold_sum (input [31:0] a, input [31:0] b, output [31:0] y);
  ff_f32_sum sum_of(a, b, y);
endmodule
