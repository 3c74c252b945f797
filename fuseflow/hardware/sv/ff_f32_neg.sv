// Copyright and licence: Apache-2.0, as the package.
// The number -a.
module ff_f32_neg (input [31:0] a, output [31:0] y);
  ff_f32_number number({~a[31], a[30:0]}, y);
endmodule
