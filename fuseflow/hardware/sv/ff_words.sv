// Copyright and licence: Apache-2.0, as the package.
// Which of the N words of an array in the scratchpad have come to port P, for simulation: those that were read there as the array has them. A
// request has a tag of T bits, and its word may come at any of the G ports of banks. It is there in the cycle in which it comes.
module ff_words #(
  parameter N = 1, T = 5, I = 10, S = 6, A = 40, G = 1, P = 0, FILE = ""
) (
  input  clk,
  input  rst,
  input  valid,
  input  [A-1:0] offset,
  input  [T-1:0] tag,
  input  [G-1:0] read_valid,
  input  [G*(I+T)-1:0] read_id,
  input  [G*(8<<S)-1:0] read_data,
  output reg [N-1:0] arrived
);
  localparam W = 8 << S;
  reg [W-1:0] words [0:N-1];
  initial $readmemh(FILE, words);
  reg [A-1:0] asked [0:(1 << T)-1];
  reg [N-1:0] held;
  reg [A-1:0] word;
  integer g;
  always @* begin
    arrived = held;
    for (g = 0; g < G; g = g + 1) if (read_valid[g] && read_id[g*(I+T)+T +: I] == I'(P)) begin
      word = asked[read_id[g*(I+T) +: T]];
      if (read_data[g*W +: W] === words[word]) arrived[word] = 1'b1;
    end
  end
  always @(posedge clk) begin
    held <= rst ? {N{1'b0}} : arrived;
    if (valid) asked[tag] <= offset >> S;
  end
endmodule
