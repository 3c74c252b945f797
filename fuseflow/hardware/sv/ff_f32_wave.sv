// Copyright and licence: Apache-2.0, as the package.
// sin(a), or cos(a) if `cosine` is set, within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_wave (input [31:0] a, input cosine, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  // 2 digits before the point and 82 behind it, of |a| in quarter turns
  wire [7:0] start = exponent[7:0] + 8'd31;
  wire [251:0] two_over_pi = 252'h00000000000000a2f9836e4e441529fc2757d1f534ddc0db6295993c439041f;
  wire [251:0] moved = two_over_pi << start;
  wire [83:0] window = moved[251:168];
  wire [83:0] turns = window * {60'b0, significand};
  wire negative = turns[81];
  wire [81:0] fraction = negative ? -turns[81:0] : turns[81:0];
  wire [1:0] quarters = turns[83:82] + {1'b0, negative};
  // its 31 leading digits, which are digits * 2**last quarter turns
  function [5:0] length(input [53:0] v);
    integer k;
    begin
      length = 6'd0;
      for (k = 0; k < 54; k = k + 1) if (v[k]) length = k[5:0] + 6'd1;
    end
  endfunction
  wire [5:0] count = length(fraction[81:28]);
  wire [81:0] aligned = fraction << (6'd54 - count);
  wire [30:0] digits = aligned[81:51];
  wire signed [10:0] last = $signed({5'b0, count}) - 11'sd85;
  wire [10:0] away = -(last <<< 1) - 11'sd31;
  wire [61:0] square = digits * digits;
  wire [61:0] place = away > 11'd62 ? 62'b0 : square >> away[5:0];
  wire signed [43:0] ratio, level;
  ff_f32_curve_sine #(.T(29)) rises(place[28:0], ratio);
  ff_f32_curve_cosine #(.T(29)) falls(place[28:0], level);
  wire [62:0] product = digits * ratio[31:0];
  wire level_part = quarters[0] ^ cosine;
  wire flips = cosine ? quarters[1] ^ quarters[0] : sign ^ quarters[1];
  wire [31:0] finite;
  ff_f32_round round(
      flips ^ (negative & ~level_part), level_part ? {31'b0, level[31:0]} : product, level_part ? -11'sd31 : last - 11'sd31, finite
  );
  wire unused = &{1'b0, zero, exponent[8], moved[167:0], aligned[50:0], place[61:29], ratio[43:32], level[43:32]};
  assign y = nan | infinite ? 32'h7fc00000 : a[30:0] < 31'h39000000 ? (cosine ? 32'h3f800000 : a) : finite;
endmodule
