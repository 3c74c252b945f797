// Copyright and licence: Apache-2.0, as the package.
// a, or 0 if that is larger. It is -0 of -0.
module ff_f32_relu (input [31:0] a, output [31:0] y);
  ff_f32_number number(a[31] & |a[30:0] & ~(&a[30:23] & |a[22:0]) ? 32'b0 : a, y);
endmodule
