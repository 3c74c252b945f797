// Copyright and licence: Apache-2.0, as the package.
// How two numbers compare: neither below nor equal where one is a NaN. +0 equals -0.
module ff_f32_order (input [31:0] a, input [31:0] b, output nan, output below, output equal);
  wire zero = ~|a[30:0] & ~|b[30:0];
  assign nan = (&a[30:23] & |a[22:0]) | (&b[30:23] & |b[22:0]);
  assign equal = ~nan & (a == b | zero);
  wire smaller = a[31] != b[31] ? a[31] : a[31] ? a[30:0] > b[30:0] : a[30:0] < b[30:0];
  assign below = ~nan & ~zero & smaller;
endmodule
