// Copyright and licence: Apache-2.0, as the package.
// A stream of tiles to one reader: a FIFO of D tokens of W bits, each of which is visible L cycles after the firing that gave it.
// A token lies in its slot from that firing on, so the latency has no registers for tiles, and a value may be computed late: a cycle with `late`
// puts in_data into the slot that was taken last. The reader sees the slot no earlier than in the cycle after that. The rest is as in ff_channel.
module ff_tile_channel #(
  parameter W = 8, D = 4, L = 1
) (
  input  clk,
  input  rst,
  input  in_valid,
  input  [W-1:0] in_data,
  input  late,
  output in_ready,
  output out_valid,
  output [W-1:0] out_data,
  input  out_take
);
  localparam A = D > 1 ? $clog2(D) : 1;
  localparam C = $clog2(D + 1);
  localparam [C-1:0] FULL = D[C-1:0];
  localparam [A-1:0] LAST = A'(D - 1);
  localparam SHALLOW = 2;
  reg [C-1:0] slots, held;
  reg [A-1:0] head, tail;
  wire [A-1:0] next = !out_take ? head : head == LAST ? {A{1'b0}} : head + 1'b1;
  wire [A-1:0] newest = tail == {A{1'b0}} ? LAST : tail - 1'b1;
  wire [A-1:0] place = late ? newest : tail;
  wire enable = in_valid | late;
  wire seen_valid;

  generate
    if (L == 1) begin : direct
      assign seen_valid = in_valid;
    end else begin : delayed
      reg [L-2:0] coming;
      always @(posedge clk) coming <= rst ? {(L-1){1'b0}} : (L-1)'({coming, in_valid});
      assign seen_valid = coming[L-2];
    end
  endgenerate

  assign in_ready = slots != {C{1'b0}};
  assign out_valid = held != {C{1'b0}};

  generate
    if (D <= SHALLOW) begin : shallow
      reg [W-1:0] store [0:D-1];
      always @(posedge clk) if (enable) store[place] <= in_data;
      assign out_data = store[head];
    end else begin : deep
      ff_sram #(.W(W), .A(A), .N(D)) words (
        .clk(clk), .enable(enable), .address(place), .data(in_data), .read_address(next), .read(out_data)
      );
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) begin
      slots <= FULL;
      held <= {C{1'b0}};
      head <= {A{1'b0}};
      tail <= {A{1'b0}};
    end else begin
      if (in_valid & ~out_take) slots <= slots - 1'b1;
      if (out_take & ~in_valid) slots <= slots + 1'b1;
      if (seen_valid & ~out_take) held <= held + 1'b1;
      if (out_take & ~seen_valid) held <= held - 1'b1;
      if (in_valid) tail <= tail == LAST ? {A{1'b0}} : tail + 1'b1;
      head <= next;
    end
  end
endmodule
