module {
  "einsum.program"() {name = "every.construct"} : () -> ()
  %0 = "einsum.input"() {fill = 0xFFF0000000000000 : f64, name = "layer1.weight", span = #einsum.span<"every.ein", 2 : i64, 8 : i64>} : () -> tensor<4x8xf64, #einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64>>>
  %1 = "einsum.input"() {fill = 1.000000e-05 : f64, name = "0.bias", span = #einsum.span<"every.ein", 3 : i64, 8 : i64>} : () -> tensor<8xf32, #einsum.format<["compressed"], array<i64: 0>, array<i64>>>
  %2 = "einsum.input"() {fill = 0.000000e+00 : f64, name = "B", span = #einsum.span<"every.ein", 4 : i64, 8 : i64>} : () -> tensor<4x4x8xi32, #einsum.format<["dense", "compressed(nonunique)", "singleton"], array<i64: 2, 0, 1>, array<i64>>>
  %3 = "einsum.input"() {fill = 0.000000e+00 : f64, name = "s", span = #einsum.span<"every.ein", 5 : i64, 8 : i64>} : () -> tensor<f32>
  %4 = "einsum.input"() {fill = 0.000000e+00 : f64, name = "untyped", span = #einsum.span<"every.ein", 6 : i64, 8 : i64>} : () -> tensor<4xf32>
  %5 = "einsum.input"() {fill = 0.000000e+00 : f64, name = "blocked", span = #einsum.span<"every.ein", 7 : i64, 8 : i64>} : () -> tensor<4x6xf32, #einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64: 2, 3>>>
  %6 = "einsum.input"() {fill = 0.000000e+00 : f64, name = "inferred", span = #einsum.span<"every.ein", 8 : i64, 8 : i64>} : () -> tensor<4x6xf32, #einsum.format<unit, array<i64>, array<i64: 2, 3>>>
  "einsum.declare"() {fill = 0.000000e+00 : f64, name = "H", span = #einsum.span<"every.ein", 9 : i64, 8 : i64>, type = tensor<2x4x4xf64, #einsum.format<["dense", "dense", "dense"], array<i64: 0, 1, 2>, array<i64>>>} : () -> ()
  "einsum.declare"() {fill = 0.000000e+00 : f64, name = "z", span = #einsum.span<"every.ein", 19 : i64, 8 : i64>, type = tensor<4x6xf32>} : () -> ()
  "einsum.like"() {structure = "blocked", tensor = "z"} : () -> ()
  %7 = "einsum.access"(%0) {indices = ["i", #einsum.split<"h", "d", 4 : i64>]} : (tensor<4x8xf64, #einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64>>>) -> !einsum.element
  %8 = "einsum.constant"() {value = -1.000000e+00 : f64} : () -> !einsum.element
  %9 = "einsum.constant"() {value = 2.000000e+00 : f64} : () -> !einsum.element
  %10 = "einsum.access"(%3) {indices = []} : (tensor<f32>) -> !einsum.element
  %11 = "einsum.apply"(%9, %10) {operator = "sub"} : (!einsum.element, !einsum.element) -> !einsum.element
  %12 = "einsum.apply"(%8, %11) {operator = "mul"} : (!einsum.element, !einsum.element) -> !einsum.element
  %13 = "einsum.apply"(%7, %12) {operator = "sub"} : (!einsum.element, !einsum.element) -> !einsum.element
  %14 = "einsum.define"(%13) {indices = ["h", "i", "d"], name = "H", path = "layer1.attn", span = #einsum.span<"every.ein", 10 : i64, 1 : i64>} : (!einsum.element) -> tensor<2x4x4xf64, #einsum.format<["dense", "dense", "dense"], array<i64: 0, 1, 2>, array<i64>>>
  %15 = "einsum.access"(%14) {indices = ["h", "i", "d"]} : (tensor<2x4x4xf64, #einsum.format<["dense", "dense", "dense"], array<i64: 0, 1, 2>, array<i64>>>) -> !einsum.element
  %16 = "einsum.apply"(%15) {operator = "neg"} : (!einsum.element) -> !einsum.element
  %17 = "einsum.access"(%4) {indices = ["j"]} : (tensor<4xf32>) -> !einsum.element
  %18 = "einsum.apply"(%16, %17) {operator = "mul"} : (!einsum.element, !einsum.element) -> !einsum.element
  %19 = "einsum.reduce"(%18) {over = ["j"], reduction = "max"} : (!einsum.element) -> !einsum.element
  %20 = "einsum.apply"(%19) {operator = "neg"} : (!einsum.element) -> !einsum.element
  %21 = "einsum.constant"() {value = 2.500000e-07 : f64} : () -> !einsum.element
  %22 = "einsum.apply"(%20, %21) {operator = "div"} : (!einsum.element, !einsum.element) -> !einsum.element
  %23 = "einsum.define"(%22) {indices = ["i", #einsum.split<"h", "d", 4 : i64>], name = "Y", path = "", span = #einsum.span<"every.ein", 11 : i64, 1 : i64>} : (!einsum.element) -> tensor<4x8x!einsum.element>
  %24 = "einsum.access"(%0) {indices = ["i", "k"]} : (tensor<4x8xf64, #einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64>>>) -> !einsum.element
  %25 = "einsum.constant"() {value = 0x7FF0000000000000 : f64} : () -> !einsum.element
  %26 = "einsum.apply"(%24, %25) {operator = "max"} : (!einsum.element, !einsum.element) -> !einsum.element
  %27 = "einsum.reduce"(%26) {over = ["i", "k"], reduction = "sum"} : (!einsum.element) -> !einsum.element
  %28 = "einsum.access"(%4) {indices = ["i"]} : (tensor<4xf32>) -> !einsum.element
  %29 = "einsum.reduce"(%28) {over = ["i"], reduction = "prod"} : (!einsum.element) -> !einsum.element
  %30 = "einsum.apply"(%27, %29) {operator = "add"} : (!einsum.element, !einsum.element) -> !einsum.element
  %31 = "einsum.define"(%30) {indices = [], name = "r", path = "", span = #einsum.span<"every.ein", 12 : i64, 1 : i64>} : (!einsum.element) -> tensor<!einsum.element>
  %32 = "einsum.access"(%5) {indices = ["i", "k"]} : (tensor<4x6xf32, #einsum.format<["dense", "compressed"], array<i64: 0, 1>, array<i64: 2, 3>>>) -> !einsum.element
  %33 = "einsum.access"(%6) {indices = ["i", "k"]} : (tensor<4x6xf32, #einsum.format<unit, array<i64>, array<i64: 2, 3>>>) -> !einsum.element
  %34 = "einsum.apply"(%32, %33) {operator = "add"} : (!einsum.element, !einsum.element) -> !einsum.element
  %35 = "einsum.define"(%34) {indices = ["i", "k"], name = "z", path = "", span = #einsum.span<"every.ein", 13 : i64, 1 : i64>} : (!einsum.element) -> tensor<4x6xf32>
  %36 = "einsum.access"(%14) {indices = ["h", "i", "d"]} : (tensor<2x4x4xf64, #einsum.format<["dense", "dense", "dense"], array<i64: 0, 1, 2>, array<i64>>>) -> !einsum.element
  %37 = "einsum.keep"(%36) {over = ["d"], rule = "1 of 2"} : (!einsum.element) -> !einsum.element
  %38 = "einsum.define"(%37) {indices = ["h", "i", "d"], name = "q", path = "", span = #einsum.span<"every.ein", 14 : i64, 1 : i64>} : (!einsum.element) -> tensor<2x4x4x!einsum.element>
  "einsum.output"(%23) : (tensor<4x8x!einsum.element>) -> ()
  "einsum.output"(%31) : (tensor<!einsum.element>) -> ()
  "einsum.output"(%35) : (tensor<4x6xf32>) -> ()
  "einsum.output"(%38) : (tensor<2x4x4x!einsum.element>) -> ()
}
