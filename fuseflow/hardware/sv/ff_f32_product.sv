// Copyright and licence: Apache-2.0, as the package.
// The correctly rounded product a * b. The product of two significands has its leading digit in one of two places, so that its digits only
// move to the right, and only where it is below the normal numbers. Of two factors below them, the product is nearest to zero.
module ff_f32_product (input [31:0] a, input [31:0] b, output [31:0] y);
  wire low = ~|a[30:23];
  wire [31:0] factor = low ? a : b; // the one that may be below the normal numbers
  wire [31:0] other = low ? b : a;
  wire ss, ns, is, zs;
  wire signed [8:0] es;
  wire [23:0] ms;
  ff_f32_unpack unpacked(factor, ss, ns, is, zs, es, ms);
  wire io = &other[30:23] & ~|other[22:0];
  wire no = &other[30:23] & |other[22:0];
  wire zo = ~|other[30:23];
  wire [47:0] product = ms * {1'b1, other[22:0]};
  wire [47:0] digits = product[47] ? product : product << 1;
  wire signed [9:0] exponent = {es[8], es} + $signed({2'b0, other[30:23]}) - 10'sd127 + $signed({9'b0, product[47]});
  wire signed [9:0] lost = -10'sd126 - exponent; // the digits that a number below the normal ones lacks
  wire below = lost > 10'sd0;
  wire gone = lost > 10'sd24;
  wire [4:0] down = below ? lost[4:0] : 5'd0;
  wire [24:0] kept = digits[47:23] >> down; // with the digit behind the last one
  wire rest = |digits[22:0] | |(digits[47:23] & ~(25'h1ffffff << down));
  wire more = kept[0] & (rest | kept[1]);
  wire [9:0] biased = below ? 10'd0 : exponent + 10'sd126; // the leading one of a normal number adds 1 to it
  wire [32:0] word = {biased, 23'b0} + {9'b0, kept[24:1]} + {32'b0, more};
  wire sign = ss ^ other[31];
  wire infinite = is | io;
  wire zero = zs | zo;
  wire nan = ns | no | (infinite & (zs | ~|other[30:0]));
  assign y = nan ? 32'h7fc00000 : infinite | (word >= 33'h7f800000 & ~zero) ? {sign, 8'hff, 23'b0}
           : zero | gone ? {sign, 31'b0} : {sign, word[30:0]};
endmodule
