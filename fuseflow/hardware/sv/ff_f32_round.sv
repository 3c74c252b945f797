// Copyright and licence: Apache-2.0, as the package.
// The float that is nearest to significand * 2**exponent, ties to even. What is too large becomes infinite. The significand is below 2**63.
module ff_f32_round (input sign, input [62:0] significand, input signed [10:0] exponent, output [31:0] y);
  function [5:0] length(input [62:0] v);
    integer k;
    begin
      length = 6'd0;
      for (k = 0; k < 63; k = k + 1) if (v[k]) length = k[5:0] + 6'd1;
    end
  endfunction
  wire signed [10:0] normal = exponent + $signed({5'b0, length(significand)}) - 11'sd24;
  wire signed [10:0] last = normal < -11'sd149 ? -11'sd149 : normal; // the exponent of the last digit that is kept
  wire signed [11:0] lost = {last[10], last} - {exponent[10], exponent};
  wire gone = lost > 12'sd62;
  wire right = lost > 12'sd0;
  wire [5:0] down = lost[5:0];
  wire [5:0] up = -lost[5:0];
  wire [62:0] kept = right ? significand >> down : significand << up;
  wire [62:0] rest = significand & ~(63'h7fffffffffffffff << down);
  wire [62:0] half = 63'd1 << (down - 6'd1);
  wire more = right & (rest > half | (rest == half & kept[0]));
  wire [11:0] biased = {last[10], last} + 12'sd149; // the leading one of a normal number adds 1 to it
  wire [34:0] word = {biased, 23'b0} + {10'b0, kept[24:0]} + {34'b0, more};
  wire unused = &{1'b0, kept[62:25]};
  assign y = gone | ~|significand ? {sign, 31'b0} : word >= 35'h7f800000 ? {sign, 8'hff, 23'b0} : {sign, word[30:0]};
endmodule
