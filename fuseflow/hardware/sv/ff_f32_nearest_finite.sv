// Copyright and licence: Apache-2.0, as the package.
// The number nearest to a in a type of narrow floats without infinities, where 1 + b is the next one above 1, and c the largest one: the
// steps of fuseflow/float32/functions.py.
module ff_f32_nearest_finite (input [31:0] a, input [31:0] b, input [31:0] c, output [31:0] y);
  wire sa, na, ia, za, sb, nb, ib, zb, sc, nc, ic, zc;
  wire signed [8:0] exponent, relative, top;
  wire [23:0] significand, mb, mc;
  ff_f32_unpack number(a, sa, na, ia, za, exponent, significand);
  ff_f32_unpack step(b, sb, nb, ib, zb, relative, mb);
  ff_f32_unpack greatest(c, sc, nc, ic, zc, top, mc);
  wire signed [10:0] at = {{2{exponent[8]}}, exponent};
  wire signed [10:0] own = at + {{2{relative[8]}}, relative};
  wire signed [10:0] floor = {{2{relative[8]}}, relative} + 11'sd2 - {{2{top[8]}}, top};
  wire signed [10:0] last = own > floor ? own : floor; // the exponent of the last digit
  wire signed [10:0] lost = last - at + 11'sd23;
  wire [4:0] down = lost[4:0];
  wire [24:0] shifted = {1'b0, significand} >> down;
  wire [24:0] rest = {1'b0, significand} & ~(25'h1ffffff << down);
  wire [24:0] half = 25'd1 << (down - 5'd1);
  wire more = rest > half | (rest == half & shifted[0]);
  wire [24:0] kept = shifted + {24'b0, more};
  wire [31:0] rounded;
  ff_f32_round round(sa, {38'b0, kept}, last, rounded);
  wire invalid = za | sb | sc | nb | nc | ib | ic | zb | zc;
  wire unused = &{1'b0, ia, mb, mc};
  assign y = na ? 32'h7fc00000 : invalid ? a : a[30:0] >= c[30:0] ? {sa, c[30:0]} : lost <= 11'sd0 ? a
           : lost > 11'sd25 ? {sa, 31'b0} : rounded[30:0] >= c[30:0] ? {sa, c[30:0]} : rounded;
endmodule
