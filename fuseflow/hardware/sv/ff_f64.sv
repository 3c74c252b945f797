// Copyright and licence: Apache-2.0, as the package.
// Operators on 64-bit floats, for simulation only: bit for bit those of fuseflow/ops.py, with one NaN. Infinities are compared as bits, because
// some versions of Verilator print a real constant of minus infinity that C++ does not read.
`define FF_NAN 64'h7ff8000000000000
`define FF_NINF 64'hfff0000000000000
`define FF_IS_NAN(v) ((&v[62:52]) & (|v[51:0]))
`define FF_F64_BODY(RESULT) \
  wire [63:0] r = RESULT; \
  assign y = `FF_IS_NAN(r) ? `FF_NAN : r; \
endmodule
`define FF_F64_1(NAME, RESULT) module NAME (input [63:0] a, output [63:0] y); \
  real p; \
  assign p = $bitstoreal(a); \
  `FF_F64_BODY(RESULT)
`define FF_F64_2(NAME, RESULT) module NAME (input [63:0] a, input [63:0] b, output [63:0] y); \
  real p, q; \
  assign p = $bitstoreal(a); \
  assign q = $bitstoreal(b); \
  `FF_F64_BODY(RESULT)
`define FF_F64_TRUTH(NAME, OPERATOR) `FF_F64_2(NAME, (p OPERATOR q) ? 64'h3ff0000000000000 : 64'h0)

`FF_F64_2(ff_f64_add, (a == `FF_NINF || b == `FF_NINF) ? `FF_NINF : $realtobits(p + q))
`FF_F64_2(ff_f64_sub, a == `FF_NINF ? `FF_NINF : $realtobits(p - q))
`FF_F64_2(ff_f64_mul, (p == 0.0 || q == 0.0) ? 64'h0 : $realtobits(p * q))
`FF_F64_2(ff_f64_div, p == 0.0 ? 64'h0 : $realtobits(p / q))
`FF_F64_2(ff_f64_pow, q == 0.0 ? 64'h3ff0000000000000 : $realtobits($pow(p, q)))
`FF_F64_2(ff_f64_max, (`FF_IS_NAN(a) || `FF_IS_NAN(b)) ? `FF_NAN : p >= q ? a : b)
`FF_F64_2(ff_f64_min, (a == `FF_NINF || b == `FF_NINF) ? `FF_NINF : (`FF_IS_NAN(a) || `FF_IS_NAN(b)) ? `FF_NAN : p <= q ? a : b)
`FF_F64_TRUTH(ff_f64_eq, ==)
`FF_F64_2(ff_f64_ne, (`FF_IS_NAN(a) || `FF_IS_NAN(b) || p != q) ? 64'h3ff0000000000000 : 64'h0)
`FF_F64_TRUTH(ff_f64_lt, <)
`FF_F64_TRUTH(ff_f64_le, <=)
`FF_F64_TRUTH(ff_f64_gt, >)
`FF_F64_TRUTH(ff_f64_ge, >=)
`FF_F64_2(ff_f64_threshold, (`FF_IS_NAN(a) || (p != 0.0 && $bitstoreal({1'b0, a[62:0]}) >= q)) ? a : 64'h0)
`FF_F64_1(ff_f64_neg, {~a[63], a[62:0]})
`FF_F64_1(ff_f64_abs, {1'b0, a[62:0]})
`FF_F64_1(ff_f64_relu, (`FF_IS_NAN(a) || p >= 0.0) ? a : 64'h0)
`FF_F64_1(ff_f64_exp, $realtobits($exp(p)))
`FF_F64_1(ff_f64_log, $realtobits($ln(p)))
`FF_F64_1(ff_f64_sqrt, $realtobits($sqrt(p)))
`FF_F64_1(ff_f64_rsqrt, $realtobits(1.0 / $sqrt(p)))
`FF_F64_1(ff_f64_sin, $realtobits($sin(p)))
`FF_F64_1(ff_f64_cos, $realtobits($cos(p)))
`FF_F64_1(ff_f64_tanh, $realtobits($tanh(p)))
`FF_F64_1(ff_f64_sigmoid, $realtobits(1.0 / (1.0 + $exp(-p))))
`FF_F64_2(ff_f64_fold_sum, $realtobits(p + q))
`FF_F64_2(ff_f64_fold_prod, $realtobits(p * q))
`FF_F64_2(ff_f64_fold_max, (`FF_IS_NAN(a) || `FF_IS_NAN(b)) ? `FF_NAN : p >= q ? a : b)
`FF_F64_2(ff_f64_fold_min, (`FF_IS_NAN(a) || `FF_IS_NAN(b)) ? `FF_NAN : q < p ? b : a)

module ff_f64_where (input [63:0] a, input [63:0] b, input [63:0] c, output [63:0] y);
  wire [63:0] r = (|a[62:0]) ? b : c;
  assign y = `FF_IS_NAN(r) ? `FF_NAN : r;
endmodule

// a between b and c, rounded to an integer, ties to even. 4503599627370496 is 2**52, and 6755399441055744 is 1.5 * 2**52.
module ff_f64_saturate (input [63:0] a, input [63:0] b, input [63:0] c, output [63:0] y);
  real p, q, s, above, clipped, magnitude;
  assign p = $bitstoreal(a);
  assign q = $bitstoreal(b);
  assign s = $bitstoreal(c);
  assign above = p > q ? p : q;
  assign clipped = above < s ? above : s;
  assign magnitude = clipped < 0.0 ? -clipped : clipped;
  wire [63:0] r = `FF_IS_NAN(a) ? `FF_NAN
    : magnitude < 4503599627370496.0 ? $realtobits((clipped + 6755399441055744.0) - 6755399441055744.0) : $realtobits(clipped);
  assign y = `FF_IS_NAN(r) ? `FF_NAN : r;
endmodule

// The number nearest to a in a small format of floats whose largest number is c, and that has no infinities.
module ff_f64_nearest_finite (input [63:0] a, input [63:0] b, input [63:0] c, output [63:0] y);
  real p, ulps, greatest, magnitude, scaled, apart, scaled_end, apart_end, own, least, quantum, whole, result;
  assign p = $bitstoreal(a);
  assign ulps = $bitstoreal(b);
  assign greatest = $bitstoreal(c);
  assign magnitude = $bitstoreal({1'b0, a[62:0]});
  assign scaled = p * 4503599627370497.0;
  assign apart = scaled - scaled * (1.0 - 1.0 / 9007199254740992.0);
  assign own = (apart < 0.0 ? -apart : apart) * ulps;
  assign scaled_end = greatest * 4503599627370497.0;
  assign apart_end = scaled_end - scaled_end * (1.0 - 1.0 / 9007199254740992.0);
  assign least = 4.0 * ulps / (apart_end < 0.0 ? -apart_end : apart_end);
  assign quantum = own > least ? own : least;
  assign whole = (p / quantum + 6755399441055744.0) - 6755399441055744.0;
  assign result = (whole < 0.0 ? -whole : whole) * quantum;
  wire same = a[62:0] == 63'b0 || `FF_IS_NAN(a) || !(ulps > 0.0 && greatest > 0.0);
  wire [63:0] bits = $realtobits(result);
  wire [63:0] r = same ? a : magnitude < greatest && result < greatest ? {a[63], bits[62:0]} : {a[63], c[62:0]};
  assign y = `FF_IS_NAN(r) ? `FF_NAN : r;
endmodule

// The number nearest to a in a small format of floats, by the steps of fuseflow/ops.py. 4503599627370497 is 2**52 + 1.
module ff_f64_nearest (input [63:0] a, input [63:0] b, input [63:0] c, output [63:0] y);
  real p, ulps, least, magnitude, scaled, apart, own, quantum, whole, result;
  assign p = $bitstoreal(a);
  assign ulps = $bitstoreal(b);
  assign least = $bitstoreal(c);
  assign magnitude = $bitstoreal({1'b0, a[62:0]});
  assign scaled = p * 4503599627370497.0;
  assign apart = scaled - scaled * (1.0 - 1.0 / 9007199254740992.0);
  assign own = (apart < 0.0 ? -apart : apart) * ulps;
  assign quantum = own > least ? own : least;
  assign whole = (p / quantum + 6755399441055744.0) - 6755399441055744.0;
  assign result = (whole < 0.0 ? -whole : whole) * quantum;
  wire same = a[62:0] == 63'b0 || (&a[62:52]) || !(ulps > 0.0 && least > 0.0);
  wire beyond = magnitude * least >= 4.0 * ulps || result * least >= 4.0 * ulps;
  wire [63:0] bits = $realtobits(result);
  wire [63:0] r = same ? a : beyond ? {a[63], 63'h7ff0000000000000} : {a[63], bits[62:0]};
  assign y = `FF_IS_NAN(r) ? `FF_NAN : r;
endmodule
