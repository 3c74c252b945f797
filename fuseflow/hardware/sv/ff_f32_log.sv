// Copyright and licence: Apache-2.0, as the package.
// log(a), within 1 ulp: the steps of fuseflow/float32/functions.py.
module ff_f32_log (input [31:0] a, output [31:0] y);
  wire sign, nan, infinite, zero;
  wire signed [8:0] exponent;
  wire [23:0] significand;
  ff_f32_unpack operand(a, sign, nan, infinite, zero, exponent, significand);
  wire signed [63:0] value;
  wire signed [10:0] units;
  ff_f32_logarithm binary(significand, exponent, value, units);
  wire [63:0] magnitude = value[63] ? -value : value;
  wire [30:0] digits;
  wire signed [6:0] dropped;
  ff_f32_leading #(.W(31)) leading(magnitude[62:0], digits, dropped);
  wire [61:0] product = digits * 31'd1488522236;
  wire [31:0] finite;
  ff_f32_round round(value[63], {1'b0, product}, units + {{4{dropped[6]}}, dropped} - 11'sd31, finite);
  wire unused = &{1'b0, magnitude[63]};
  assign y = nan ? 32'h7fc00000 : zero ? 32'hff800000 : sign ? 32'h7fc00000 : infinite ? 32'h7f800000 : finite;
endmodule
