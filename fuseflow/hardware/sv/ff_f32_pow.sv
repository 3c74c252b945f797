// Copyright and licence: Apache-2.0, as the package.
// a**b, within 1 ulp, with the special cases of C: the steps of fuseflow/float32/functions.py.
module ff_f32_pow (input [31:0] a, input [31:0] b, output [31:0] y);
  wire sa, na, ia, za, sb, nb, ib, zb;
  wire signed [8:0] ea, eb;
  wire [23:0] ma, mb;
  ff_f32_unpack base(a, sa, na, ia, za, ea, ma);
  ff_f32_unpack index(b, sb, nb, ib, zb, eb, mb);
  // whether b is a whole number, and an odd one
  wire even = eb > 9'sd23;
  wire fraction = eb < 9'sd0;
  wire [4:0] behind = 5'd23 - eb[4:0];
  wire [23:0] below = mb & ~(24'hffffff << behind);
  wire [23:0] units_of_b = mb >> behind;
  wire is_whole = even | (~fraction & ~|below);
  wire odd = is_whole & ~even & units_of_b[0];
  wire sign = sa & odd;
  // 2**(b * log2 |a|)
  wire signed [63:0] value;
  wire signed [10:0] units;
  ff_f32_logarithm binary(ma, ea, value, units);
  wire [63:0] magnitude = value[63] ? -value : value;
  wire [36:0] digits;
  wire signed [6:0] dropped;
  ff_f32_leading #(.W(37)) leading(magnitude[62:0], digits, dropped);
  wire [60:0] product = digits * mb;
  wire signed [10:0] last = units + {{4{dropped[6]}}, dropped} + {{2{eb[8]}}, eb} - 11'sd23; // the exponent of the last digit
  wire falls = value[63] ^ sb;
  wire one = ~|product;
  wire signed [10:0] first = last + (product[60] ? 11'sd61 : 11'sd60); // the digits before the point
  wire beyond = first > 11'sd8;
  wire signed [10:0] away = -last - 11'sd32;
  wire [60:0] shifted = product >> away[5:0];
  wire [40:0] z = away > 11'sd62 ? 41'b0 : shifted[40:0];
  wire [31:0] power;
  wire signed [9:0] whole;
  ff_f32_power_of_2 binary_power(falls ? -$signed({1'b0, z}) : $signed({1'b0, z}), power, whole);
  wire [31:0] finite;
  ff_f32_round round(sign, {31'b0, power}, {whole[9], whole} - 11'sd31, finite);
  wire is_one = a[30:0] == 31'h3f800000;
  wire unused = &{1'b0, magnitude[63], units_of_b[23:1], shifted[60:41]};
  assign y = zb | a == 32'h3f800000 ? 32'h3f800000
           : na | nb ? 32'h7fc00000
           : ib ? (is_one ? 32'h3f800000 : (a[30:0] > 31'h3f800000) == sb ? 32'b0 : 32'h7f800000)
           : za | ia ? {sign, za == sb ? 31'h7f800000 : 31'b0}
           : sa & ~is_whole ? 32'h7fc00000
           : one ? {sign, 31'h3f800000}
           : beyond ? {sign, falls ? 31'b0 : 31'h7f800000}
           : finite;
endmodule
