// Copyright and licence: Apache-2.0, as the package.
// The leading digits of a number, of so many as the width of y, and how many digits behind them were dropped. If that is negative, zeros
// were added.
module ff_f32_leading #(parameter W = 31) (input [62:0] a, output [W-1:0] y, output signed [6:0] dropped);
  function [5:0] length(input [62:0] v);
    integer k;
    begin
      length = 6'd0;
      for (k = 0; k < 63; k = k + 1) if (v[k]) length = k[5:0] + 6'd1;
    end
  endfunction
  localparam [6:0] DIGITS = W;
  wire [6:0] more = -dropped;
  wire [62:0] shifted = dropped > 7'sd0 ? a >> dropped[5:0] : a << more[5:0];
  wire unused = &{1'b0, shifted[62:W], more[6]};
  assign dropped = $signed({1'b0, length(a)}) - $signed(DIGITS);
  assign y = shifted[W-1:0];
endmodule
