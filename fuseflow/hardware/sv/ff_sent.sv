// Copyright and licence: Apache-2.0, as the package.
// How many requests a port made, and whether all of them are answered, the last one before this cycle. `answers` counts modulo its range.
module ff_sent #(
  parameter W = 8, C = 32
) (
  input  clk,
  input  rst,
  input  request_valid,
  input  [W-1:0] answers,
  output reg [C-1:0] sent,
  output idle
);
  reg [W-1:0] shown;
  assign idle = sent[W-1:0] == answers & shown == answers;
  always @(posedge clk) begin
    sent <= rst ? {C{1'b0}} : sent + C'(request_valid);
    shown <= rst ? {W{1'b0}} : answers;
  end
endmodule
