// Copyright and licence: Apache-2.0, as the package.
// A bank of a scratchpad: N words of W bits, with P ports that read or write, and one that moves words from and to the memory. What is read is
// there in the next cycle.
module ff_bank #(
  parameter W = 8, N = 16, R = 4, P = 1
) (
  input  clk,
  input  [P-1:0] valid,
  input  [P-1:0] write,
  input  [P*R-1:0] row,
  input  [P*W-1:0] data,
  output reg [P*W-1:0] read,
  input  move_valid,
  input  move_write,
  input  [R-1:0] move_row,
  input  [W-1:0] move_data,
  output reg [W-1:0] move_read
);
  reg [W-1:0] store [0:N-1];
  integer p;
  always @(posedge clk) begin
    for (p = 0; p < P; p = p + 1) if (valid[p]) begin
      if (write[p]) store[row[p*R +: R]] <= data[p*W +: W];
      else read[p*W +: W] <= store[row[p*R +: R]];
    end
    if (move_valid) begin
      if (move_write) store[move_row] <= move_data;
      else move_read <= store[move_row];
    end
  end
endmodule
