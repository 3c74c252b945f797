// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.
// cos(pi/2 a), a**2 from 0 to 1/4: one polynomial of degree 5, in units of 2**-31.
module ff_f32_curve_cosine #(parameter T = 29) (input [T-1:0] t, output signed [43:0] y);
  wire signed [43:0] c0 = 44'sd2147483648;
  wire signed [43:0] c1 = -44'sd662337939;
  wire signed [43:0] c2 = 44'sd34046945;
  wire signed [43:0] c3 = -44'sd700062;
  wire signed [43:0] c4 = 44'sd7710;
  wire signed [43:0] c5 = -44'sd52;
  wire signed [43:0] h5 = c5;
  wire signed [T+44:0] p4 = h5 * $signed({1'b0, t});
  wire signed [43:0] h4 = c4 + p4[T+43:T];
  wire unused4 = &{1'b0, p4[T+44], p4[T-1:0]};
  wire signed [T+44:0] p3 = h4 * $signed({1'b0, t});
  wire signed [43:0] h3 = c3 + p3[T+43:T];
  wire unused3 = &{1'b0, p3[T+44], p3[T-1:0]};
  wire signed [T+44:0] p2 = h3 * $signed({1'b0, t});
  wire signed [43:0] h2 = c2 + p2[T+43:T];
  wire unused2 = &{1'b0, p2[T+44], p2[T-1:0]};
  wire signed [T+44:0] p1 = h2 * $signed({1'b0, t});
  wire signed [43:0] h1 = c1 + p1[T+43:T];
  wire unused1 = &{1'b0, p1[T+44], p1[T-1:0]};
  wire signed [T+44:0] p0 = h1 * $signed({1'b0, t});
  wire signed [43:0] h0 = c0 + p0[T+43:T];
  wire unused0 = &{1'b0, p0[T+44], p0[T-1:0]};
  assign y = h0;
endmodule
