// Copyright and licence: Apache-2.0, as the package.
// An array in a memory that takes time, for simulation: it answers in the same cycle, with what lies in lines that have arrived. Element k has
// E bits, from bit (k + F) * E of the array on, and a line has L bits. What has not arrived is undefined.
module ff_line_rom #(
  parameter W = 8, A = 8, N = 1, E = 32, F = 0, L = 512, C = 1, FILE = ""
) (
  input  [A-1:0] address,
  input  [C-1:0] arrived,
  output [W-1:0] data
);
  reg [W-1:0] store [0:N-1];
  initial $readmemh(FILE, store);
  wire [63:0] first = (64'(address) + 64'(F)) * 64'(E);
  wire [63:0] low = first / 64'(L);
  wire [63:0] high = (first + 64'(E - 1)) / 64'(L);
  reg there;
  reg [63:0] k;
  always @* begin
    there = 1'b1;
    for (k = low; k <= high; k = k + 1) there = there & arrived[k];  // a tile may lie in many lines
  end
  assign data = 64'(address) >= 64'(N) ? {W{1'b0}} : there ? store[address] : {W{1'bx}};
endmodule
