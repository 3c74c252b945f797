// Copyright and licence: Apache-2.0, as the package.
// tanh(a), within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_tanh (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  // below 1/4: a * polynomial(16 a**2)
  wire [47:0] square = significand * significand;
  wire [5:0] away = 6'd13 - {exponent[4:0], 1'b0};
  wire [47:0] place = square >> away;
  wire signed [43:0] ratio;
  ff_f32_curve_tanh #(.T(29)) curve(place[28:0], ratio);
  wire [55:0] near = significand * ratio[31:0];
  // from there on: by exp(-2 |a|)
  wire [40:0] z;
  ff_f32_binary_exponent scaled(significand, exponent + 9'sd1, z);
  wire [31:0] value;
  wire signed [9:0] whole;
  ff_f32_power_of_2 power(-$signed({1'b0, z}), value, whole);
  wire [9:0] down = -whole;
  wire [31:0] part = |down[9:6] ? 32'b0 : value >> down[5:0];
  wire [31:0] share;
  ff_f32_share divided(32'h80000000 - part, {1'b0, part} + 33'h80000000, share);
  wire small_one = a[30:0] < 31'h3e800000;
  wire [31:0] finite;
  ff_f32_round round(
      sign, small_one ? {7'b0, near} : {31'b0, share}, small_one ? {{2{exponent[8]}}, exponent} - 11'sd54 : -11'sd31, finite
  );
  wire unused = &{1'b0, infinite, zero, place[47:29], ratio[43:32]};
  assign y = nan ? 32'h7fc00000 : a[30:0] >= 31'h41800000 ? {sign, 31'h3f800000} : a[30:0] < 31'h38800000 ? a : finite;
endmodule
