// Copyright and licence: Apache-2.0, as the package.
// a / b, correctly rounded, digit by digit. Zero on the left wins, also over zero and NaN, and the result is then +0.
module ff_f32_div (input [31:0] a, input [31:0] b, output [31:0] y);
  wire sa, na, ia, za, sb, nb, ib, zb;
  wire signed [8:0] ea, eb;
  wire [23:0] ma, mb;
  ff_f32_unpack left(a, sa, na, ia, za, ea, ma);
  ff_f32_unpack right(b, sb, nb, ib, zb, eb, mb);
  reg [26:0] quotient;
  reg [24:0] rest;
  integer k;
  always @* begin
    rest = {1'b0, ma};
    quotient = 27'b0;
    for (k = 26; k >= 0; k = k - 1) begin
      quotient[k] = rest >= {1'b0, mb};
      if (quotient[k]) rest = rest - {1'b0, mb};
      rest = rest << 1;
    end
  end
  wire [31:0] finite;
  ff_f32_round round(sa ^ sb, {35'b0, quotient, |rest}, {{2{ea[8]}}, ea} - {{2{eb[8]}}, eb} - 11'sd27, finite);
  wire nan = na | nb | (ia & ib);
  assign y = za ? 32'b0 : nan ? 32'h7fc00000 : ia | zb ? {sa ^ sb, 8'hff, 23'b0} : ib ? {sa ^ sb, 31'b0} : finite;
endmodule
