// Copyright and licence: Apache-2.0, as the package.
// The correctly rounded product a * b.
module ff_f32_product (input [31:0] a, input [31:0] b, output [31:0] y);
  wire sa, na, ia, za, sb, nb, ib, zb;
  wire signed [8:0] ea, eb;
  wire [23:0] ma, mb;
  ff_f32_unpack left(a, sa, na, ia, za, ea, ma);
  ff_f32_unpack right(b, sb, nb, ib, zb, eb, mb);
  wire [47:0] product = ma * mb;
  wire [31:0] finite;
  ff_f32_round round(sa ^ sb, {15'b0, product}, {{2{ea[8]}}, ea} + {{2{eb[8]}}, eb} - 11'sd46, finite);
  wire nan = na | nb | (za & ib) | (zb & ia);
  assign y = nan ? 32'h7fc00000 : ia | ib ? {sa ^ sb, 8'hff, 23'b0} : za | zb ? {sa ^ sb, 31'b0} : finite;
endmodule
