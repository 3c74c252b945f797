// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.
// 1 / sqrt(x), x from 1 to 2 and from 2 to 4: 16 pieces of degree 6, in units of 2**-31.
module ff_f32_curve_rsqrt #(parameter T = 29) (input [3:0] piece, input [T-1:0] t, output signed [43:0] y);
  reg signed [43:0] c0, c1, c2, c3, c4, c5, c6;
  always @*
    case (piece)
      4'd0: begin c0 = 44'sd2147483648; c1 = -44'sd134217726; c2 = 44'sd12582884; c3 = -44'sd1310550; c4 = 44'sd142865; c5 = -44'sd15373; c6 = 44'sd1253; end
      4'd1: begin c0 = 44'sd2024667000; c1 = -44'sd112481499; c2 = 44'sd9373446; c3 = -44'sd867840; c4 = 44'sd84168; c5 = -44'sd8115; c6 = 44'sd607; end
      4'd2: begin c0 = 44'sd1920767767; c1 = -44'sd96038388; c2 = 44'sd7202873; c3 = -44'sd600206; c4 = 44'sd52422; c5 = -44'sd4577; c6 = 44'sd317; end
      4'd3: begin c0 = 44'sd1831380208; c1 = -44'sd83244555; c2 = 44'sd5675762; c3 = -44'sd429965; c4 = 44'sd34153; c5 = -44'sd2723; c6 = 44'sd175; end
      4'd4: begin c0 = 44'sd1753413056; c1 = -44'sd73058877; c2 = 44'sd4566178; c3 = -44'sd317087; c4 = 44'sd23095; c5 = -44'sd1694; c6 = 44'sd102; end
      4'd5: begin c0 = 44'sd1684624773; c1 = -44'sd64793260; c2 = 44'sd3738072; c3 = -44'sd239615; c4 = 44'sd16113; c5 = -44'sd1094; c6 = 44'sd62; end
      4'd6: begin c0 = 44'sd1623345051; c1 = -44'sd57976609; c2 = 44'sd3105889; c3 = -44'sd184871; c4 = 44'sd11546; c5 = -44'sd730; c6 = 44'sd39; end
      4'd7: begin c0 = 44'sd1568300315; c1 = -44'sd52276677; c2 = 44'sd2613834; c3 = -44'sd145211; c4 = 44'sd8466; c5 = -44'sd500; c6 = 44'sd25; end
      4'd8: begin c0 = 44'sd1518500250; c1 = -44'sd94906264; c2 = 44'sd8897443; c3 = -44'sd926699; c4 = 44'sd101021; c5 = -44'sd10870; c6 = 44'sd886; end
      4'd9: begin c0 = 44'sd1431655765; c1 = -44'sd79536431; c2 = 44'sd6628027; c3 = -44'sd613655; c4 = 44'sd59516; c5 = -44'sd5738; c6 = 44'sd429; end
      4'd10: begin c0 = 44'sd1358187913; c1 = -44'sd67909395; c2 = 44'sd5093201; c3 = -44'sd424410; c4 = 44'sd37068; c5 = -44'sd3236; c6 = 44'sd224; end
      4'd11: begin c0 = 44'sd1294981364; c1 = -44'sd58862789; c2 = 44'sd4013370; c3 = -44'sd304031; c4 = 44'sd24150; c5 = -44'sd1926; c6 = 44'sd124; end
      4'd12: begin c0 = 44'sd1239850262; c1 = -44'sd51660428; c2 = 44'sd3228776; c3 = -44'sd224214; c4 = 44'sd16331; c5 = -44'sd1198; c6 = 44'sd72; end
      4'd13: begin c0 = 44'sd1191209601; c1 = -44'sd45815754; c2 = 44'sd2643216; c3 = -44'sd169433; c4 = 44'sd11394; c5 = -44'sd774; c6 = 44'sd44; end
      4'd14: begin c0 = 44'sd1147878294; c1 = -44'sd40995653; c2 = 44'sd2196195; c3 = -44'sd130724; c4 = 44'sd8164; c5 = -44'sd516; c6 = 44'sd27; end
      default: begin c0 = 44'sd1108955787; c1 = -44'sd36965193; c2 = 44'sd1848259; c3 = -44'sd102680; c4 = 44'sd5986; c5 = -44'sd354; c6 = 44'sd18; end
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
