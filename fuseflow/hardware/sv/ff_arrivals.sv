// Copyright and licence: Apache-2.0, as the package.
// Which of the N lines of an array have come to a port that reads, for simulation. A request has a tag of T bits, and an answer is one for all
// requests up to its tag. What comes in a cycle is there in the next one, as in the port.
module ff_arrivals #(
  parameter N = 1, T = 5, S = 6, A = 40
) (
  input  clk,
  input  rst,
  input  valid,
  input  [A-1:0] offset,
  input  [T-1:0] tag,
  input  answer_valid,
  input  [T-1:0] answer_tag,
  output reg [N-1:0] arrived
);
  reg [A-1:0] lines [0:(1 << T)-1];
  reg [T-1:0] next;
  integer k;
  reg [T-1:0] ahead;
  always @(posedge clk) begin
    if (rst) begin
      arrived <= {N{1'b0}};
      next <= {T{1'b0}};
    end else begin
      if (valid) lines[tag] = offset >> S;  // it may be answered in the same cycle
      ahead = answer_tag - next;
      for (k = 0; answer_valid && k <= 32'(ahead); k = k + 1) arrived[lines[T'(next + T'(k))]] <= 1'b1;
      if (answer_valid) next <= answer_tag + 1'b1;
    end
  end
endmodule
