// Copyright and licence: Apache-2.0, as the package.
// One step of a maximum.
module ff_f32_fold_max (input [31:0] a, input [31:0] b, output [31:0] y);
  ff_f32_max larger(a, b, y);
endmodule
