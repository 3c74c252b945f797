// Copyright and licence: Apache-2.0, as the package.
// erf(a), within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_erf (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  wire signed [8:0] up = exponent + 9'sd5;
  wire [8:0] down = -up;
  wire [4:0] away = down > 9'd24 ? 5'd24 : down[4:0];
  wire [29:0] place = up >= 9'sd0 ? {6'b0, significand} << up[2:0] : {6'b0, significand} >> away; // in units of 2**-28
  wire signed [43:0] ratio;
  ff_f32_curve_erf #(.T(26)) curve(place[29:26], place[25:0], ratio);
  wire [55:0] product = significand * ratio[31:0];
  wire [31:0] finite;
  ff_f32_round round(sign, {7'b0, product}, {{2{exponent[8]}}, exponent} - 11'sd54, finite);
  wire unused = &{1'b0, infinite, ratio[43:32]};
  assign y = nan ? 32'h7fc00000 : zero ? a : a[30:0] >= 31'h40800000 ? {sign, 31'h3f800000} : finite;
endmodule
