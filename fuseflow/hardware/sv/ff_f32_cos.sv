// Copyright and licence: Apache-2.0, as the package.
// cos(a), within 1 ulp.
module ff_f32_cos (input [31:0] a, output [31:0] y);
  ff_f32_wave wave(a, 1'b1, y);
endmodule
