// Copyright and licence: Apache-2.0, as the package.
// What a port sees of a memory that answers every request L cycles later, for simulation. A node sees an answer in the cycle after the port.
module ff_fixed_memory #(
  parameter L = 1, I = 15
) (
  input  clk,
  input  rst,
  input  valid,
  input  [I-1:0] id,
  output answer_valid,
  output [I-1:0] answer_id
);
  ff_delay #(.W(I), .L(L)) latency (
    .clk(clk), .rst(rst), .in_valid(valid), .in_data(id), .out_valid(answer_valid), .out_data(answer_id)
  );
endmodule
