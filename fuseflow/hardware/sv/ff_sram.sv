// Copyright and licence: Apache-2.0, as the package.
// A memory of N words of W bits with one port that writes and one that reads. What is read is there in the next cycle, also if it is written in
// the same one.
module ff_sram #(
  parameter W = 8, A = 4, N = 16
) (
  input  clk,
  input  enable,
  input  [A-1:0] address,
  input  [W-1:0] data,
  input  [A-1:0] read_address,
  output reg [W-1:0] read
);
  reg [W-1:0] store [0:N-1];
  always @(posedge clk) begin
    if (enable) store[address] <= data;
    read <= enable && address == read_address ? data : store[read_address];
  end
endmodule
