// Copyright and licence: Apache-2.0, as the package.
// A row of L - 1 registers that never stalls: what is given is there L - 1 cycles later.
module ff_delay #(
  parameter W = 8, L = 2
) (
  input  clk,
  input  rst,
  input  in_valid,
  input  [W-1:0] in_data,
  output out_valid,
  output [W-1:0] out_data
);
  generate
    if (L == 1) begin : direct
      wire unused = clk & rst;
      assign out_valid = in_valid;
      assign out_data = in_data;
    end else begin : delayed
      reg [L-2:0] valids;
      reg [W-1:0] datas [0:L-2];
      integer k;
      always @(posedge clk) begin
        for (k = 0; k < L - 1; k = k + 1) begin
          valids[k] <= rst ? 1'b0 : k == 0 ? in_valid : valids[k == 0 ? 0 : k-1];
          datas[k] <= k == 0 ? in_data : datas[k == 0 ? 0 : k-1];
        end
      end
      assign out_valid = valids[L-2];
      assign out_data = datas[L-2];
    end
  endgenerate
endmodule
