// Copyright and licence: Apache-2.0, as the package.
// The magnitude of a.
module ff_f32_abs (input [31:0] a, output [31:0] y);
  wire unused = &{1'b0, a[31]};
  ff_f32_number number({1'b0, a[30:0]}, y);
endmodule
