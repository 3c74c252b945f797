// Copyright and licence: Apache-2.0, as the package.
// The whole number that is nearest to a, ties to even, but at least b and at most c. A NaN stays one.
module ff_f32_saturate (input [31:0] a, input [31:0] b, input [31:0] c, output [31:0] y);
  wire n1, n2, above, under, e1, e2;
  ff_f32_order lower(b, a, n1, above, e1);
  wire [31:0] least = above ? a : b;
  ff_f32_order upper(least, c, n2, under, e2);
  wire [31:0] held = under ? least : c;
  wire unused = &{1'b0, n1, n2, e1, e2};
  // 150 - exponent field digits are behind the point; from 2**23 on there is no fraction
  wire whole = held[30:23] >= 8'd150;
  wire tiny = held[30:23] < 8'd126; // below 1/2
  wire [4:0] behind = 5'd22 - held[27:23]; // 150 - field, modulo 32
  wire [23:0] significand = {1'b1, held[22:0]};
  wire [23:0] kept = significand >> behind;
  wire [24:0] rest = {1'b0, significand} & ~(25'h1ffffff << behind);
  wire [24:0] half = 25'd1 << (behind - 5'd1);
  wire more = rest > half | (rest == half & kept[0]);
  wire [24:0] count = {1'b0, kept} + {24'b0, more};
  wire [31:0] rounded;
  ff_f32_round round(held[31], {38'b0, count}, 11'sd0, rounded);
  // 0 is +0, as a sum with a large number and its difference are
  wire [31:0] result = whole ? held : tiny | ~|count ? 32'b0 : rounded;
  ff_f32_number number(&a[30:23] & |a[22:0] ? a : result, y);
endmodule
