// Copyright and licence: Apache-2.0, as the package.
// A memory of N words of W bits that is written in one place and read in one, in the same cycle. A word is written before it is read.
module ff_memory1 #(
  parameter W = 8, A = 4, N = 16
) (
  input  clk,
  input  enable,
  input  [A-1:0] address,
  input  [W-1:0] data,
  input  [A-1:0] address0,
  output [W-1:0] read0
);
  reg [W-1:0] store [0:N-1];
  always @(posedge clk) if (enable) store[address] <= data;
  assign read0 = store[address0];
endmodule
