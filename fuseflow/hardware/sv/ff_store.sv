// Copyright and licence: Apache-2.0, as the package.
// What stores Z arrays from the scratchpad to the memory, through K ports: port k asks for line k of all arrays together, then for line k + K,
// and so on, one in a cycle. An array has as many lines as its written words fill, `most` at most. It begins once all of the N parts of a run
// have ended and the M ports at the memories are idle.
module ff_store #(
  parameter Z = 1, K = 8, N = 1, M = 1, C = 32, A = 40, S = 6, F = 6
) (
  input  clk,
  input  rst,
  input  [N-1:0] ended,
  input  [M-1:0] idle,
  input  [Z*C-1:0] words,
  input  [Z*A-1:0] base,
  input  [Z*A-1:0] most,
  input  [K-1:0] ready,
  output reg [K-1:0] valid,
  output reg [K*(A-S+2)-1:0] line
);
  reg [K*A-1:0] number;
  reg [A-1:0] first, filled, lines;
  integer k, z;
  wire unused = &{1'b0, base};

  always @* begin
    valid = {K{1'b0}};
    line = {(K*(A-S+2)){1'b0}};
    for (k = 0; k < K; k = k + 1) begin
      first = {A{1'b0}};
      for (z = 0; z < Z; z = z + 1) begin
        filled = ((A'(words[z*C +: C]) << F) + A'((1 << S) - 1)) >> S;
        lines = filled < most[z*A +: A] ? filled : most[z*A +: A];
        if (number[k*A +: A] >= first && number[k*A +: A] - first < lines) begin
          valid[k] = &ended & &idle & ready[k];
          line[k*(A-S+2) +: A-S+2] = {2'b0, (A-S)'(base[z*A+S +: A-S] + (A-S)'(number[k*A +: A] - first))};
        end
        first = first + lines;
      end
    end
  end

  always @(posedge clk) begin
    for (k = 0; k < K; k = k + 1)
      number[k*A +: A] <= rst ? A'(k) : valid[k] ? number[k*A +: A] + A'(K) : number[k*A +: A];
  end
endmodule
