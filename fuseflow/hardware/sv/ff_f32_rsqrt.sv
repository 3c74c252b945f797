// Copyright and licence: Apache-2.0, as the package.
// 1 / sqrt(a), within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_rsqrt (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  wire signed [43:0] value;
  ff_f32_curve_rsqrt #(.T(20)) curve({exponent[0], significand[22:20]}, significand[19:0], value);
  wire [31:0] finite;
  ff_f32_round round(1'b0, {31'b0, value[31:0]}, -11'sd31 - {{3{exponent[8]}}, exponent[8:1]}, finite);
  wire unused = &{1'b0, significand[23], value[43:32]};
  assign y = nan ? 32'h7fc00000 : zero ? {sign, 31'h7f800000} : sign ? 32'h7fc00000 : infinite ? 32'b0 : finite;
endmodule
