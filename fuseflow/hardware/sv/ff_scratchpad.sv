// Copyright and licence: Apache-2.0, as the package.
// A scratchpad: B banks of N words of 8 << S bits. Word n is in bank n mod B. Each of the P ports of a bank starts an access in a cycle, which is
// done L cycles later. Q ports of nodes ask for a word in a cycle each, at a byte address. At most 1 << T requests of a port have no answer, and
// differ in their tags. Answers come in the order of issue, and one may answer several requests, as at `ff_port`.
// Requests arrive at a bank in the order of their cycles, and within cycle c in the order of the M ports of the memory from port c mod M on:
// the number of a port is in its id. A request draws a ticket of its bank, and its access starts when the ticket is served, in the same cycle
// if it may. What is written is given in the last cycle of an access (`access_valid`), and what is read is there in the next cycle. Each bank has
// a further port, through which words are moved from and to the memory.
module ff_scratchpad #(
  parameter Q = 2, T = 5, I = 10, A = 40, B = 16, P = 1, L = 4, S = 6, N = 16, R = 4, M = 2
) (
  input  clk,
  input  rst,
  input  [Q-1:0] valid,
  input  [Q-1:0] write,
  input  [Q*A-1:0] address,
  input  [Q*(I+T)-1:0] id,
  output reg [Q-1:0] answer_valid,
  output reg [Q*(I+T)-1:0] answer_id,
  output [B*P-1:0] access_valid,
  output [B*P-1:0] access_write,
  output [B*P*(I+T)-1:0] access_id,
  output [B*P*R-1:0] access_row,
  input  [B*P*(8<<S)-1:0] write_data,
  output [B*P-1:0] read_valid,
  output [B*P*(I+T)-1:0] read_id,
  output [B*P*(8<<S)-1:0] read_data,
  input  [B-1:0] move_valid,
  input  [B-1:0] move_write,
  input  [B*R-1:0] move_row,
  input  [B*(8<<S)-1:0] move_data,
  output [B*(8<<S)-1:0] move_read
);
  localparam W = 8 << S;
  localparam D = I + T;
  localparam E = (Q > 1 ? Q : 2) << T;
  localparam C = $clog2(E) + 1;  // at most E tickets of a bank are drawn and not served
  localparam K = B > 1 ? $clog2(B) : 1;
  localparam U = Q > 1 ? $clog2(Q) : 1;
  localparam V = U + T;  // the number of an entry: a port and a tag

  // The entries that wait with their tickets, and how many tickets of each bank were drawn and served.
  reg [E-1:0] waiting;
  reg [C-1:0] ticket [0:E-1];
  reg [K-1:0] bank [0:E-1];
  reg [R-1:0] row [0:E-1];
  reg [B*C-1:0] drawn, served;
  reg [I-1:0] turn;

  // The requests of this cycle, and the tickets that they draw.
  reg [Q*K-1:0] asked_bank;
  reg [Q*R-1:0] asked_row;
  reg [Q*C-1:0] asked_ticket;
  reg [B*C-1:0] now_drawn, now_served;
  reg [63:0] word;
  reg [C-1:0] left;
  integer q, pass, b;
  always @* begin
    now_drawn = drawn;
    asked_ticket = {(Q*C){1'b0}};
    for (q = 0; q < Q; q = q + 1) begin
      word = 64'(address[q*A +: A]) >> S;
      asked_bank[q*K +: K] = K'(word % 64'(B));
      asked_row[q*R +: R] = R'(word / 64'(B));
    end
    for (pass = 0; pass < 2; pass = pass + 1)
      for (q = 0; q < Q; q = q + 1)
        if (valid[q] && (id[q*D+T +: I] >= turn) == (pass == 0)) begin
          asked_ticket[q*C +: C] = now_drawn[asked_bank[q*K +: K]*C +: C];
          now_drawn[asked_bank[q*K +: K]*C +: C] = asked_ticket[q*C +: C] + 1'b1;
        end
    for (b = 0; b < B; b = b + 1) begin
      left = now_drawn[b*C +: C] - served[b*C +: C];
      now_served[b*C +: C] = served[b*C +: C] + (left < C'(P) ? left : C'(P));
    end
  end

  // The accesses that start in this cycle: the ticket that is j behind the served ones gets port j of its bank.
  reg [E-1:0] starts;
  reg [Q-1:0] starts_now;
  reg [B*P-1:0] start_valid;
  reg [B*P*(V+R)-1:0] start_data;
  reg [C-1:0] behind;
  integer k, a;
  always @* begin
    start_valid = {(B*P){1'b0}};
    start_data = {(B*P*(V+R)){1'b0}};
    starts = {E{1'b0}};
    starts_now = {Q{1'b0}};
    a = 0;
    for (k = 0; k < E; k = k + 1) begin
      behind = ticket[k] - served[bank[k]*C +: C];
      if (waiting[k] && behind < C'(P)) begin
        a = 32'(bank[k]) * P + 32'(behind);
        starts[k] = 1'b1;
        start_valid[a] = 1'b1;
        start_data[a*(V+R) +: V+R] = {V'(k), row[k]};
      end
    end
    for (k = 0; k < Q; k = k + 1) begin
      behind = asked_ticket[k*C +: C] - served[asked_bank[k*K +: K]*C +: C];
      if (valid[k] && behind < C'(P)) begin
        a = 32'(asked_bank[k*K +: K]) * P + 32'(behind);
        starts_now[k] = 1'b1;
        start_valid[a] = 1'b1;
        start_data[a*(V+R) +: V+R] = {U'(k), id[k*D +: T], asked_row[k*R +: R]};
      end
    end
  end

  integer r;
  always @(posedge clk) begin
    for (r = 0; r < Q; r = r + 1) if (valid[r]) begin
      ticket[{U'(r), id[r*D +: T]}] <= asked_ticket[r*C +: C];
      bank[{U'(r), id[r*D +: T]}] <= asked_bank[r*K +: K];
      row[{U'(r), id[r*D +: T]}] <= asked_row[r*R +: R];
    end
    if (rst) begin
      waiting <= {E{1'b0}};
      drawn <= {(B*C){1'b0}};
      served <= {(B*C){1'b0}};
      turn <= {I{1'b0}};
    end else begin
      waiting <= waiting & ~starts;
      for (r = 0; r < Q; r = r + 1) if (valid[r] && !starts_now[r]) waiting[{U'(r), id[r*D +: T]}] <= 1'b1;
      drawn <= now_drawn;
      served <= now_served;
      turn <= turn == I'(M - 1) ? {I{1'b0}} : turn + 1'b1;
    end
  end

  // The banks. An access is L - 1 cycles on its way to its bank, and the node sees the answer one cycle later.
  wire [B*P*V-1:0] entry;
  genvar g;
  generate
    for (g = 0; g < B * P; g = g + 1) begin : ports
      wire [V-1:0] mine = entry[g*V +: V];
      reg seen;
      reg [D-1:0] seen_id;
      ff_delay #(.W(V + R), .L(L)) latency (
        .clk(clk), .rst(rst), .in_valid(start_valid[g]), .in_data(start_data[g*(V+R) +: V+R]),
        .out_valid(access_valid[g]), .out_data({entry[g*V +: V], access_row[g*R +: R]})
      );
      assign access_write[g] = access_valid[g] & write[mine[V-1:T]];
      assign access_id[g*D +: D] = {id[mine[V-1:T]*D+T +: I], mine[T-1:0]};
      always @(posedge clk) begin
        seen <= !rst & access_valid[g] & !access_write[g];
        seen_id <= access_id[g*D +: D];
      end
      assign read_valid[g] = seen;
      assign read_id[g*D +: D] = seen_id;
    end
    for (g = 0; g < B; g = g + 1) begin : banks
      ff_bank #(.W(W), .N(N), .R(R), .P(P)) words (
        .clk(clk), .valid(access_valid[g*P +: P]), .write(access_write[g*P +: P]), .row(access_row[g*P*R +: P*R]),
        .data(write_data[g*P*W +: P*W]), .read(read_data[g*P*W +: P*W]), .move_valid(move_valid[g]), .move_write(move_write[g]),
        .move_row(move_row[g*R +: R]), .move_data(move_data[g*W +: W]), .move_read(move_read[g*W +: W])
      );
    end
  endgenerate

  // Answers: for each port, the accesses that are done, from the oldest one without an answer on.
  reg [E-1:0] done, now_done;
  reg [Q*T-1:0] next, now_next;
  reg more;
  integer n, p, d;
  always @* begin
    now_done = done;
    for (d = 0; d < B * P; d = d + 1) if (access_valid[d]) now_done[entry[d*V +: V]] = 1'b1;
    answer_valid = {Q{1'b0}};
    answer_id = {(Q*D){1'b0}};
    now_next = next;
    for (p = 0; p < Q; p = p + 1) begin
      more = now_done[{U'(p), next[p*T +: T]}];
      for (n = 0; n < (1 << T); n = n + 1) if (more) begin
        answer_valid[p] = 1'b1;
        answer_id[p*D +: D] = {id[p*D+T +: I], now_next[p*T +: T]};
        now_done[{U'(p), now_next[p*T +: T]}] = 1'b0;
        now_next[p*T +: T] = now_next[p*T +: T] + 1'b1;
        more = now_done[{U'(p), now_next[p*T +: T]}];
      end
    end
  end
  always @(posedge clk) begin
    done <= rst ? {E{1'b0}} : now_done;
    next <= rst ? {(Q*T){1'b0}} : now_next;
  end
endmodule
