// Copyright and licence: Apache-2.0, as the package.
// A stream to one reader: L - 1 cycles of latency that never stall, then a FIFO of D tokens of W bits.
// A slot is taken by the firing that gives a token (in_valid) and free in the cycle after the token is taken out. So in_ready counts slots
// and not tokens, and the depth is D at any latency. in_ready and out_valid are registered: no path goes through a channel.
// Up to SHALLOW tokens lie in flip-flops. More lie in a memory whose word at the head of the FIFO is read one cycle ahead, in the same cycles.
module ff_channel #(
  parameter W = 8, D = 4, L = 1
) (
  input  clk,
  input  rst,
  input  in_valid,
  input  [W-1:0] in_data,
  output in_ready,
  output out_valid,
  output [W-1:0] out_data,
  input  out_take
);
  localparam A = D > 1 ? $clog2(D) : 1;
  localparam C = $clog2(D + 1);
  localparam [C-1:0] FULL = D[C-1:0];
  localparam [A-1:0] LAST = A'(D - 1);
  localparam SHALLOW = 8;
  reg [C-1:0] slots, held;
  reg [A-1:0] head, tail;
  wire [A-1:0] next = !out_take ? head : head == LAST ? {A{1'b0}} : head + 1'b1;
  wire put_valid;
  wire [W-1:0] put_data;

  ff_delay #(.W(W), .L(L)) latency (
    .clk(clk), .rst(rst), .in_valid(in_valid), .in_data(in_data), .out_valid(put_valid), .out_data(put_data)
  );

  assign in_ready = slots != {C{1'b0}};
  assign out_valid = held != {C{1'b0}};

  generate
    if (D <= SHALLOW) begin : shallow
      reg [W-1:0] store [0:D-1];
      always @(posedge clk) if (put_valid) store[tail] <= put_data;
      assign out_data = store[head];
    end else begin : deep
      ff_sram #(.W(W), .A(A), .N(D)) words (
        .clk(clk), .enable(put_valid), .address(tail), .data(put_data), .read_address(next), .read(out_data)
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
      if (put_valid & ~out_take) held <= held + 1'b1;
      if (out_take & ~put_valid) held <= held - 1'b1;
      if (put_valid) tail <= tail == LAST ? {A{1'b0}} : tail + 1'b1;
      head <= next;
    end
  end
endmodule
