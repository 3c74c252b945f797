// Copyright and licence: Apache-2.0, as the package.
// The quotient of two numbers in units of 2**-31, rounded down. The denominator is from 2**31 to 2**32, and not below the numerator.
module ff_f32_share (input [31:0] numerator, input [32:0] denominator, output [31:0] y);
  reg [31:0] quotient;
  reg [33:0] rest;
  integer k;
  always @* begin
    rest = {2'b0, numerator};
    quotient = 32'b0;
    for (k = 31; k >= 0; k = k - 1) begin
      quotient[k] = rest >= {1'b0, denominator};
      if (quotient[k]) rest = rest - {1'b0, denominator};
      rest = rest << 1;
    end
  end
  assign y = quotient;
endmodule
