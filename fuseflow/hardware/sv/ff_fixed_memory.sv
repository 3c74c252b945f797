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
  generate
    if (L == 1) begin : direct
      wire unused = clk & rst;
      assign answer_valid = valid;
      assign answer_id = id;
    end else begin : delayed
      reg [L-2:0] valids;
      reg [I-1:0] ids [0:L-2];
      integer k;
      always @(posedge clk) begin
        for (k = 0; k < L - 1; k = k + 1) begin
          valids[k] <= rst ? 1'b0 : k == 0 ? valid : valids[k == 0 ? 0 : k-1];
          ids[k] <= k == 0 ? id : ids[k == 0 ? 0 : k-1];
        end
      end
      assign answer_valid = valids[L-2];
      assign answer_id = ids[L-2];
    end
  endgenerate
endmodule
