// Copyright and licence: Apache-2.0, as the package.
// How many bits are set.
module ff_ones #(
  parameter W = 8, A = 4
) (
  input  [W-1:0] a,
  output reg [A-1:0] y
);
  integer k;
  always @* begin
    y = {A{1'b0}};
    for (k = 0; k < W; k = k + 1) y = y + {{(A-1){1'b0}}, a[k]};
  end
endmodule
