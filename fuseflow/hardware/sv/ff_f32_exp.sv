// Copyright and licence: Apache-2.0, as the package.
// exp(a), within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_exp (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  wire [40:0] z;
  ff_f32_binary_exponent scaled(significand, exponent, z);
  wire [31:0] value;
  wire signed [9:0] whole;
  ff_f32_power_of_2 power(sign ? -$signed({1'b0, z}) : $signed({1'b0, z}), value, whole);
  wire [31:0] finite;
  ff_f32_round round(1'b0, {31'b0, value}, {whole[9], whole} - 11'sd31, finite);
  wire unused = &{1'b0, infinite, zero};
  assign y = nan ? 32'h7fc00000 : a[30:0] >= 31'h43000000 ? (sign ? 32'b0 : 32'h7f800000)
           : a[30:0] < 31'h33000000 ? 32'h3f800000 : finite;
endmodule
