// Copyright and licence: Apache-2.0, as the package.
// b if a is not 0, else c. A NaN is not 0.
module ff_f32_where (input [31:0] a, input [31:0] b, input [31:0] c, output [31:0] y);
  wire unused = &{1'b0, a[31]};
  ff_f32_number number(|a[30:0] ? b : c, y);
endmodule
