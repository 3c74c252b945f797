// Copyright and licence: Apache-2.0, as the package.
// A hop of a stream: a FIFO of two tokens of W bits, which passes one on in every cycle in which there is room behind it.
// in_ready and out_valid are registers, so no path goes through it, forth or back. A token is visible one cycle after it is given.
module ff_hop #(
  parameter W = 8
) (
  input  clk,
  input  rst,
  input  in_valid,
  input  [W-1:0] in_data,
  output reg in_ready,
  output reg out_valid,
  output [W-1:0] out_data,
  input  out_take
);
  reg [W-1:0] head, next;
  wire held = out_valid & ~out_take;
  assign out_data = head;

  always @(posedge clk) begin
    if (in_ready) next <= in_data;
    if (~held) head <= in_ready ? in_data : next;
    out_valid <= ~rst & (in_valid | ~in_ready | held);
    in_ready <= rst | ~held | (in_ready & ~in_valid);
  end
endmodule
