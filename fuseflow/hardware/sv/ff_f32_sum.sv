// Copyright and licence: Apache-2.0, as the package.
// The correctly rounded sum a + b.
module ff_f32_sum (input [31:0] a, input [31:0] b, output [31:0] y);
  wire swap = b[30:0] > a[30:0];
  wire [31:0] x = swap ? b : a;
  wire [31:0] z = swap ? a : b;
  wire [7:0] ex = |x[30:23] ? x[30:23] : 8'd1;
  wire [7:0] ez = |z[30:23] ? z[30:23] : 8'd1;
  wire [7:0] apart = ex - ez;
  wire far = apart > 8'd26;
  // 26 digits behind the smaller significand; of what is farther away only one digit is left, which says that there is something
  wire [49:0] greater = {|x[30:23], x[22:0], 26'b0};
  wire [49:0] lesser = {|z[30:23], z[22:0], 26'b0};
  wire [49:0] shifted = far ? {49'b0, |z[30:0]} : lesser >> apart[4:0];
  wire differ = x[31] ^ z[31];
  wire [50:0] total = differ ? {1'b0, greater} - {1'b0, shifted} : {1'b0, greater} + {1'b0, shifted};
  wire [31:0] finite;
  ff_f32_round round(x[31], {12'b0, total}, $signed({3'b0, ex}) - 11'sd176, finite);
  wire nan = (&a[30:23] & |a[22:0]) | (&b[30:23] & |b[22:0]) | (&a[30:23] & &b[30:23] & differ);
  assign y = nan ? 32'h7fc00000 : &x[30:23] ? x : ~|total ? {x[31] & z[31], 31'b0} : finite;
endmodule
