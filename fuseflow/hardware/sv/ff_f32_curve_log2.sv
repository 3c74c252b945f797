// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.
// log2(1 + g) / g, g from 0 to 0.5 and from -0.25 to 0: 16 pieces of degree 6, in units of 2**-38.
module ff_f32_curve_log2 #(parameter T = 29) (input [3:0] piece, input [T-1:0] t, output signed [43:0] y);
  reg signed [43:0] c0, c1, c2, c3, c4, c5, c6;
  always @*
    case (piece)
      4'd0: begin c0 = 44'sd396564993198; c1 = -44'sd12392656036; c2 = 44'sd516360639; c3 = -44'sd24204229; c4 = 44'sd1209710; c5 = -44'sd62269; c6 = 44'sd2800; end
      4'd1: begin c0 = 44'sd384665643812; c1 = -44'sd11428003154; c2 = 44'sd450425470; c3 = -44'sd19932131; c4 = 44'sd939563; c5 = -44'sd45641; c6 = 44'sd1952; end
      4'd2: begin c0 = 44'sd373669029871; c1 = -44'sd10583406847; c2 = 44'sd395839297; c3 = -44'sd16591277; c4 = 44'sd740106; c5 = -44'sd34037; c6 = 44'sd1388; end
      4'd3: begin c0 = 44'sd363465578502; c1 = -44'sd9838703515; c2 = 44'sd350186532; c3 = -44'sd13943485; c4 = 44'sd590377; c5 = -44'sd25780; c6 = 44'sd1004; end
      4'd4: begin c0 = 44'sd353963683636; c1 = -44'sd9177922269; c2 = 44'sd311655595; c3 = -44'sd11819697; c4 = 44'sd476295; c5 = -44'sd19799; c6 = 44'sd739; end
      4'd5: begin c0 = 44'sd345086054499; c1 = -44'sd8588259555; c2 = 44'sd278867351; c3 = -44'sd10097744; c4 = 44'sd388203; c5 = -44'sd15398; c6 = 44'sd551; end
      4'd6: begin c0 = 44'sd336766937906; c1 = -44'sd8059338960; c2 = 44'sd250757611; c3 = -44'sd8687900; c4 = 44'sd319351; c5 = -44'sd12113; c6 = 44'sd417; end
      4'd7: begin c0 = 44'sd328949976312; c1 = -44'sd7582668099; c2 = 44'sd226495131; c3 = -44'sd7523298; c4 = 44'sd264942; c5 = -44'sd9628; c6 = 44'sd319; end
      4'd8: begin c0 = 44'sd456338556420; c1 = -44'sd9051845980; c2 = 44'sd245481032; c3 = -44'sd7563798; c4 = 44'sd249771; c5 = -44'sd8569; c6 = 44'sd270; end
      4'd9: begin c0 = 44'sd447524869146; c1 = -44'sd8582617449; c2 = 44'sd224206624; c3 = -44'sd6645002; c4 = 44'sd210924; c5 = -44'sd6956; c6 = 44'sd212; end
      4'd10: begin c0 = 44'sd439160017498; c1 = -44'sd8153329022; c2 = 44'sd205470776; c3 = -44'sd5866632; c4 = 44'sd179279; c5 = -44'sd5692; c6 = 44'sd167; end
      4'd11: begin c0 = 44'sd431206466375; c1 = -44'sd7759297705; c2 = 44'sd188892143; c3 = -44'sd5203089; c4 = 44'sd153298; c5 = -44'sd4692; c6 = 44'sd133; end
      4'd12: begin c0 = 44'sd423631006463; c1 = -44'sd7396532155; c2 = 44'sd174157742; c3 = -44'sd4634150; c4 = 44'sd131814; c5 = -44'sd3895; c6 = 44'sd107; end
      4'd13: begin c0 = 44'sd416404125926; c1 = -44'sd7061610695; c2 = 44'sd161008837; c3 = -44'sd4143696; c4 = 44'sd113930; c5 = -44'sd3254; c6 = 44'sd87; end
      4'd14: begin c0 = 44'sd409499491135; c1 = -44'sd6751584138; c2 = 44'sd149230092; c3 = -44'sd3718777; c4 = 44'sd98949; c5 = -44'sd2734; c6 = 44'sd71; end
      default: begin c0 = 44'sd402893514597; c1 = -44'sd6463897736; c2 = 44'sd138641172; c3 = -44'sd3348910; c4 = 44'sd86327; c5 = -44'sd2311; c6 = 44'sd58; end
    endcase
  wire signed [43:0] h6 = c6;
  wire signed [T+44:0] p5 = h6 * $signed({1'b0, t});
  wire signed [43:0] h5 = c5 + p5[T+43:T];
  wire unused5 = &{1'b0, p5[T+44], p5[T-1:0]};
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
