module {
  "samml.graph"() {name = "spmm"} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["compressed", "compressed"], name = "A", order = array<i64: 0, 1>, shape = array<i64: 4, 5>, tile = array<i64>} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["compressed", "compressed"], name = "X", order = array<i64: 0, 1>, shape = array<i64: 5, 3>, tile = array<i64>} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["compressed", "compressed"], name = "Y", order = array<i64: 0, 1>, shape = array<i64: 4, 3>, tile = array<i64>} : () -> ()
  "samml.output"() {tensor = "Y"} : () -> ()
  %0 = "samml.root"() {node = "root"} : () -> !samml.ref<0 : i64>
  %1:2 = "samml.scan"(%0) {level = 0 : i64, node = "A_i", sequential = true, tensor = "A"} : (!samml.ref<0 : i64>) -> (!samml.crd<1 : i64>, !samml.ref<1 : i64>)
  %2:2 = "samml.scan"(%1#1) {level = 1 : i64, node = "A_k", sequential = true, tensor = "A"} : (!samml.ref<1 : i64>) -> (!samml.crd<2 : i64>, !samml.ref<2 : i64>)
  %3 = "samml.repeat"(%0, %1#0) {node = "rep_i"} : (!samml.ref<0 : i64>, !samml.crd<1 : i64>) -> !samml.ref<1 : i64>
  %4:2 = "samml.scan"(%3) {level = 0 : i64, node = "X_k", sequential = false, tensor = "X"} : (!samml.ref<1 : i64>) -> (!samml.crd<2 : i64>, !samml.ref<2 : i64>)
  %5:3 = "samml.join"(%2#0, %4#0, %2#1, %4#1) {kind = "intersect", node = "intersect_k", operandSegmentSizes = array<i32: 2, 2, 0>, payloads = [["ref"], ["ref"]], resultSegmentSizes = array<i32: 1, 2, 0>} : (!samml.crd<2 : i64>, !samml.crd<2 : i64>, !samml.ref<2 : i64>, !samml.ref<2 : i64>) -> (!samml.crd<2 : i64>, !samml.ref<2 : i64>, !samml.ref<2 : i64>)
  %6:2 = "samml.scan"(%5#2) {level = 1 : i64, node = "X_j", sequential = false, tensor = "X"} : (!samml.ref<2 : i64>) -> (!samml.crd<3 : i64>, !samml.ref<3 : i64>)
  %7 = "samml.load"(%5#1) {node = "A_val", sequential = false, tensor = "A"} : (!samml.ref<2 : i64>) -> !samml.val<2 : i64>
  %8 = "samml.repeat"(%7, %6#0) {node = "rep_j"} : (!samml.val<2 : i64>, !samml.crd<3 : i64>) -> !samml.val<3 : i64>
  %9 = "samml.load"(%6#1) {node = "X_val", sequential = true, tensor = "X"} : (!samml.ref<3 : i64>) -> !samml.val<3 : i64>
  %10 = "samml.alu"(%8, %9) {constants = array<i1: false, false>, function = "mul", node = "mul", values = array<f64: 0.000000e+00, 0.000000e+00>} : (!samml.val<3 : i64>, !samml.val<3 : i64>) -> !samml.val<3 : i64>
  %11:2 = "samml.accumulate"(%5#0, %6#0, %10) {function = "sum", node = "acc_k", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 1>, order = 1 : i64, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 1>} : (!samml.crd<2 : i64>, !samml.crd<3 : i64>, !samml.val<3 : i64>) -> (!samml.crd<2 : i64>, !samml.val<2 : i64>)
  "samml.write"(%1#0) {level = 0 : i64, node = "write_i", tensor = "Y"} : (!samml.crd<1 : i64>) -> ()
  "samml.write"(%11#0) {level = 1 : i64, node = "write_j", tensor = "Y"} : (!samml.crd<2 : i64>) -> ()
  "samml.write_values"(%11#1) {node = "write_val", tensor = "Y"} : (!samml.val<2 : i64>) -> ()
}
