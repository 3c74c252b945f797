// Copyright and licence: Apache-2.0, as the package.
// The narrow float that is nearest to a, where 1 + b is the next one above 1, and c the smallest above 0: the steps of
// fuseflow/float32/functions.py.
module ff_f32_nearest (input [31:0] a, input [31:0] b, input [31:0] c, output [31:0] y);
  wire sa, na, ia, za, sb, nb, ib, zb, sc, nc, ic, zc;
  wire signed [8:0] exponent, relative, absolute;
  wire [23:0] significand, mb, mc;
  ff_f32_unpack number(a, sa, na, ia, za, exponent, significand);
  ff_f32_unpack step(b, sb, nb, ib, zb, relative, mb);
  ff_f32_unpack least(c, sc, nc, ic, zc, absolute, mc);
  wire signed [10:0] at = {{2{exponent[8]}}, exponent};
  wire signed [10:0] own = at + {{2{relative[8]}}, relative};
  wire signed [10:0] floor = {{2{absolute[8]}}, absolute};
  wire signed [10:0] limit = {{2{relative[8]}}, relative} - floor + 11'sd2; // 2**limit is too large
  wire signed [10:0] last = own > floor ? own : floor; // the exponent of the last digit
  wire signed [10:0] lost = last - at + 11'sd23;
  wire [4:0] down = lost[4:0];
  wire [24:0] shifted = {1'b0, significand} >> down;
  wire [24:0] rest = {1'b0, significand} & ~(25'h1ffffff << down);
  wire [24:0] half = 25'd1 << (down - 5'd1);
  wire more = rest > half | (rest == half & shifted[0]);
  wire [24:0] kept = shifted + {24'b0, more};
  // the rounded number has as many digits before its last one as the number, or one more, which is 2 to a power then
  wire signed [10:0] first = kept == 25'd1 << (11'sd24 - lost) ? at + 11'sd1 : at;
  wire [31:0] rounded;
  ff_f32_round round(sa, {38'b0, kept}, last, rounded);
  wire keeps = ia | za | sb | sc | nb | nc | ib | ic | zb | zc | lost <= 11'sd0;
  wire valid = ~(ia | za | sb | sc | nb | nc | ib | ic | zb | zc);
  wire unused = &{1'b0, mb, mc};
  assign y = na ? 32'h7fc00000 : valid & at >= limit ? {sa, 31'h7f800000} : keeps ? a
           : lost > 11'sd25 ? {sa, 31'b0} : |kept & first >= limit ? {sa, 31'h7f800000} : rounded;
endmodule
