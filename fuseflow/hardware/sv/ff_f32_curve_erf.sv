// Copyright and licence: Apache-2.0, as the package. Written by tools/float32_curves.py.
// erf(x) / x, x from 0 to 4: 16 pieces of degree 7, in units of 2**-31.
module ff_f32_curve_erf #(parameter T = 29) (input [3:0] piece, input [T-1:0] t, output signed [43:0] y);
  reg signed [43:0] c0, c1, c2, c3, c4, c5, c6, c7;
  always @*
    case (piece)
      4'd0: begin c0 = 44'sd2423175810; c1 = 44'sd1; c2 = -44'sd50482842; c3 = 44'sd102; c4 = 44'sd946149; c5 = 44'sd869; c6 = -44'sd15126; c7 = 44'sd655; end
      4'd1: begin c0 = 44'sd2373625618; c1 = -44'sd97262608; c2 = -44'sd45010083; c3 = 44'sd3513905; c4 = 44'sd746785; c5 = -44'sd75112; c6 = -44'sd9975; c7 = 44'sd1423; end
      4'd2: begin c0 = 44'sd2235529953; c1 = -44'sd174179368; c2 = -44'sd30858510; c3 = 44'sd5600183; c4 = 44'sd271674; c5 = -44'sd105479; c6 = 44'sd561; c7 = 44'sd1112; end
      4'd3: begin c0 = 44'sd2036260126; c1 = -44'sd218525390; c2 = -44'sd13450941; c3 = 44'sd5682081; c4 = -44'sd208336; c5 = -44'sd79996; c6 = 44'sd8451; c7 = 44'sd178; end
      4'd4: begin c0 = 44'sd1809686173; c1 = -44'sd229562403; c2 = 44'sd1675820; c3 = 44'sd4223906; c4 = -44'sd475468; c5 = -44'sd26527; c6 = 44'sd9392; c7 = -44'sd545; end
      4'd5: begin c0 = 44'sd1585530347; c1 = -44'sd215521021; c2 = 44'sd11358875; c3 = 44'sd2225489; c4 = -44'sd486468; c5 = 44'sd18201; c6 = 44'sd5241; c7 = -44'sd662; end
      4'd6: begin c0 = 44'sd1383130003; c1 = -44'sd187954858; c2 = 44'sd15363253; c3 = 44'sd543317; c4 = -44'sd340078; c5 = 44'sd36121; c6 = 44'sd488; c7 = -44'sd371; end
      4'd7: begin c0 = 44'sd1210777874; c1 = -44'sd156777776; c2 = 44'sd15313482; c3 = -44'sd458947; c4 = -44'sd165096; c5 = 44'sd31697; c6 = -44'sd2041; c7 = -44'sd49; end
      4'd8: begin c0 = 44'sd1068719144; c1 = -44'sd128042141; c2 = 44'sd13231391; c3 = -44'sd844870; c4 = -44'sd38890; c5 = 44'sd18642; c6 = -44'sd2278; c7 = 44'sd108; end
      4'd9: begin c0 = 44'sd953041106; c1 = -44'sd104189233; c2 = 44'sd10617956; c3 = -44'sd855795; c4 = 44'sd23949; c5 = 44'sd7255; c6 = -44'sd1466; c7 = 44'sd117; end
      4'd10: begin c0 = 44'sd858643890; c1 = -44'sd85396606; c2 = 44'sd8247297; c3 = -44'sd712661; c4 = 44'sd42350; c5 = 44'sd863; c6 = -44'sd635; c7 = 44'sd71; end
      4'd11: begin c0 = 44'sd780824569; c1 = -44'sd70869595; c2 = 44'sd6364002; c3 = -44'sd544867; c4 = 44'sd39606; c5 = -44'sd1522; c6 = -44'sd151; c7 = 44'sd29; end
      4'd12: begin c0 = 44'sd715812070; c1 = -44'sd59626086; c2 = 44'sd4950150; c3 = -44'sd403688; c4 = 44'sd30725; c5 = -44'sd1860; c6 = 44'sd38; c7 = 44'sd6; end
      4'd13: begin c0 = 44'sd660761356; c1 = -44'sd50822975; c2 = 44'sd3905542; c3 = -44'sd298405; c4 = 44'sd22216; c5 = -44'sd1509; c6 = 44'sd77; c7 = -44'sd1; end
      4'd14: begin c0 = 44'sd613566301; c1 = -44'sd43825336; c2 = 44'sd3129656; c3 = -44'sd223141; c4 = 44'sd15776; c5 = -44'sd1078; c6 = 44'sd66; c7 = -44'sd3; end
      default: begin c0 = 44'sd572662241; c1 = -44'sd38177357; c2 = 44'sd2545039; c3 = -44'sd169598; c4 = 44'sd11275; c5 = -44'sd741; c6 = 44'sd46; c7 = -44'sd2; end
    endcase
  wire signed [43:0] h7 = c7;
  wire signed [T+44:0] p6 = h7 * $signed({1'b0, t});
  wire signed [43:0] h6 = c6 + p6[T+43:T];
  wire unused6 = &{1'b0, p6[T+44], p6[T-1:0]};
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
