// Copyright and licence: Apache-2.0, as the package.
// The square root of a, correctly rounded, digit by digit. It is a NaN below 0, and -0 of -0.
module ff_f32_sqrt (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  wire [51:0] radicand = exponent[0] ? {significand, 28'b0} : {1'b0, significand, 27'b0}; // from 2**50 to 2**52
  reg [25:0] root;
  reg [27:0] rest, trial;
  integer k;
  always @* begin
    root = 26'b0;
    rest = 28'b0;
    for (k = 25; k >= 0; k = k - 1) begin
      rest = {rest[25:0], radicand[2*k+1], radicand[2*k]};
      trial = {root, 2'b01};
      root = {root[24:0], rest >= trial};
      if (root[0]) rest = rest - trial;
    end
  end
  wire signed [10:0] half = {{3{exponent[8]}}, exponent[8:1]}; // rounded down
  wire [31:0] finite;
  ff_f32_round round(1'b0, {36'b0, root, |rest}, half - 11'sd26, finite);
  assign y = nan | (sign & ~zero) ? 32'h7fc00000 : zero | infinite ? a : finite;
endmodule
