// Copyright and licence: Apache-2.0, as the package.
// The number of the lowest bit that is set, 0 if none is.
module ff_lowest #(
  parameter W = 8, A = 3
) (
  input  [W-1:0] a,
  output reg [A-1:0] y
);
  integer k;
  always @* begin
    y = {A{1'b0}};
    for (k = W - 1; k >= 0; k = k - 1) if (a[k]) y = k[A-1:0];
  end
endmodule
