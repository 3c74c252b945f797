// Copyright and licence: Apache-2.0, as the package.
// An array that answers in the same cycle, for simulation.
module ff_rom #(
  parameter W = 8, A = 8, N = 1, FILE = ""
) (
  input  [A-1:0] address,
  output [W-1:0] data
);
  reg [W-1:0] store [0:N-1];
  initial $readmemh(FILE, store);
  assign data = 64'(address) < 64'(N) ? store[address] : {W{1'b0}};
endmodule
