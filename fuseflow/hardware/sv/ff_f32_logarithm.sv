// Copyright and licence: Apache-2.0, as the package.
// log2 of significand * 2**(exponent - 23) as value * 2**units: the steps of `logarithm` in fuseflow/float32/functions.py.
module ff_f32_logarithm (
    input [23:0] significand, input signed [8:0] exponent, output signed [63:0] value, output signed [10:0] units
);
  wire upper = significand[22];
  wire signed [24:0] g = upper ? $signed({2'b11, significand[22:0]}) : $signed({1'b0, significand[22:0], 1'b0});
  wire signed [43:0] ratio;
  ff_f32_curve_log2 #(.T(19)) curve(significand[22:19], significand[18:0], ratio);
  wire signed [68:0] product = g * ratio;
  wire signed [8:0] whole = exponent + {8'b0, upper};
  wire near = ~|whole;
  wire unused = &{1'b0, significand[23], product[68:64]};
  assign value = near ? product[63:0] : $signed({whole[8], whole, 54'b0}) + $signed({{8{product[63]}}, product[63:8]});
  assign units = near ? -11'sd62 : -11'sd54;
endmodule
