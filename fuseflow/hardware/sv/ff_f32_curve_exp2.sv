// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.
// 2**x, x from 0 to 1: 8 pieces of degree 4, in units of 2**-31.
module ff_f32_curve_exp2 #(parameter T = 29) (input [2:0] piece, input [T-1:0] t, output signed [43:0] y);
  reg signed [43:0] c0, c1, c2, c3, c4;
  always @*
    case (piece)
      3'd0: begin c0 = 44'sd2147483648; c1 = 44'sd186065271; c2 = 44'sd8060735; c3 = 44'sd232604; c4 = 44'sd5266; end
      3'd1: begin c0 = 44'sd2341847524; c1 = 44'sd202905616; c2 = 44'sd8790293; c3 = 44'sd253656; c4 = 44'sd5743; end
      3'd2: begin c0 = 44'sd2553802834; c1 = 44'sd221270144; c2 = 44'sd9585883; c3 = 44'sd276614; c4 = 44'sd6263; end
      3'd3: begin c0 = 44'sd2784941738; c1 = 44'sd241296803; c2 = 44'sd10453480; c3 = 44'sd301650; c4 = 44'sd6830; end
      3'd4: begin c0 = 44'sd3037000500; c1 = 44'sd263136029; c2 = 44'sd11399600; c3 = 44'sd328952; c4 = 44'sd7448; end
      3'd5: begin c0 = 44'sd3311872530; c1 = 44'sd286951875; c2 = 44'sd12431352; c3 = 44'sd358724; c4 = 44'sd8122; end
      3'd6: begin c0 = 44'sd3611622603; c1 = 44'sd312923238; c2 = 44'sd13556486; c3 = 44'sd391192; c4 = 44'sd8857; end
      default: begin c0 = 44'sd3938502376; c1 = 44'sd341245211; c2 = 44'sd14783453; c3 = 44'sd426597; c4 = 44'sd9659; end
    endcase
  wire signed [43:0] h4 = c4;
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
