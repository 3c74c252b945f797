// Copyright and licence: Apache-2.0, as the package.
// sin(a), within 1 ulp.
module ff_f32_sin (input [31:0] a, output [31:0] y);
  ff_f32_wave wave(a, 1'b0, y);
endmodule
