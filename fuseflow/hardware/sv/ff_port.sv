// Copyright and licence: Apache-2.0, as the package.
// A port at a memory: requests for lines, of which K may be without an answer, in the shape of the channels AR and R, or AW and B, of AXI.
// A request leaves in the cycle in which the node gives it, or waits here until the memory is ready. Answers come in the order of issue,
// and one may answer several requests: its tag says up to which one. `answers` counts them. The rest of an id is the number of the port.
module ff_port #(
  parameter W = 8, N = 8, K = 32, T = 5, P = 0, S = 6, A = 40, I = 10
) (
  input  clk,
  input  rst,
  input  request_valid,
  input  [N-1:0] request_data,
  output request_ready,
  output [W-1:0] answers,
  input  [A-1:0] base,
  output valid,
  input  ready,
  output [A-1:0] address,
  output [I+T-1:0] id,
  input  answer_valid,
  input  [I+T-1:0] answer_id
);
  localparam C = $clog2(K + 1) > T + 1 ? $clog2(K + 1) : T + 1;
  localparam [C-1:0] FULL = K[C-1:0];
  localparam [I-1:0] NUMBER = P[I-1:0];
  reg [C-1:0] slots;
  reg [W-1:0] count;
  reg [T-1:0] sent, next;
  reg held;
  reg [A-1:0] held_address;
  reg [T-1:0] held_tag;
  wire [T-1:0] ahead = answer_id[T-1:0] - next;
  wire [T:0] done = answer_valid ? {1'b0, ahead} + (T+1)'(1) : {(T+1){1'b0}};
  wire [A-1:0] asked = base + A'({request_data[N-3:0], {S{1'b0}}});
  wire unused = &{1'b0, request_data[N-1:N-2], answer_id[I+T-1:T]};

  assign request_ready = slots != {C{1'b0}} & !held;
  assign answers = count;
  assign valid = held | request_valid;
  assign address = held ? held_address : asked;
  assign id = {NUMBER, held ? held_tag : sent};

  always @(posedge clk) begin
    held_address <= address;
    held_tag <= id[T-1:0];
    if (rst) begin
      slots <= FULL;
      count <= {W{1'b0}};
      sent <= {T{1'b0}};
      next <= {T{1'b0}};
      held <= 1'b0;
    end else begin
      slots <= slots + C'(done) - C'(request_valid);
      count <= count + W'(done);
      sent <= sent + T'(request_valid);
      next <= next + done[T-1:0];
      held <= valid & !ready;
    end
  end
endmodule
