// Copyright and licence: Apache-2.0, as the package.
// H hops of a stream that hold nothing: registers that never stall, in front of a FIFO of D slots. What the writer gives comes H cycles
// later, and the writer counts slots: one is taken by the firing that gives a token, and free H cycles later than at the FIFO.
module ff_registers #(
  parameter W = 8, D = 4, H = 1
) (
  input  clk,
  input  rst,
  input  in_valid,
  input  [W-1:0] in_data,
  input  late,
  output in_ready,
  output out_valid,
  output [W-1:0] out_data,
  output out_late,
  input  out_take
);
  localparam C = $clog2(D + 1);
  localparam [C-1:0] FULL = D[C-1:0];
  reg [C-1:0] slots;
  wire freed, unused;

  ff_delay #(.W(W + 1), .L(H + 1)) forth (
    .clk(clk), .rst(rst), .in_valid(in_valid), .in_data({late, in_data}), .out_valid(out_valid), .out_data({out_late, out_data})
  );
  ff_delay #(.W(1), .L(H + 1)) back (
    .clk(clk), .rst(rst), .in_valid(out_take), .in_data(1'b0), .out_valid(freed), .out_data(unused)
  );
  assign in_ready = slots != {C{1'b0}};

  always @(posedge clk) begin
    if (rst) slots <= FULL;
    else if (in_valid & ~freed) slots <= slots - 1'b1;
    else if (freed & ~in_valid) slots <= slots + 1'b1;
  end
endmodule
