// Copyright and licence: Apache-2.0, as the package.
// What a word is: a NaN, infinite, zero; and of a finite number that is not zero the significand of 24 binary digits, whose first one is
// set, and the exponent of that digit. The magnitude is significand * 2**(exponent - 23).
module ff_f32_unpack (
    input [31:0] a,
    output sign, output nan, output infinite, output zero, output signed [8:0] exponent, output [23:0] significand
);
  function [4:0] length(input [22:0] v);
    integer k;
    begin
      length = 5'd0;
      for (k = 0; k < 23; k = k + 1) if (v[k]) length = k[4:0] + 5'd1;
    end
  endfunction
  wire normal = |a[30:23];
  wire [4:0] digits = length(a[22:0]);
  assign sign = a[31];
  assign nan = &a[30:23] & |a[22:0];
  assign infinite = &a[30:23] & ~|a[22:0];
  assign zero = ~|a[30:0];
  assign exponent = normal ? $signed({1'b0, a[30:23]}) - 9'sd127 : $signed({4'b0, digits}) - 9'sd150;
  assign significand = normal ? {1'b1, a[22:0]} : {1'b0, a[22:0]} << (5'd24 - digits);
endmodule
