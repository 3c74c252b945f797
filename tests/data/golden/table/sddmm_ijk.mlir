module {
  "table.table"() {order = ["i", "j", "k"], region = "sddmm"} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["dense", "dense"], name = "K", order = array<i64: 0, 1>, shape = array<i64: 5, 3>, tile = array<i64>} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["compressed", "compressed"], name = "M", order = array<i64: 0, 1>, shape = array<i64: 4, 5>, tile = array<i64>} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["dense", "dense"], name = "Q", order = array<i64: 0, 1>, shape = array<i64: 4, 3>, tile = array<i64>} : () -> ()
  "samml.tensor"() {dtype = "f32", fill = 0.000000e+00 : f64, levels = ["compressed", "compressed"], name = "Y", order = array<i64: 0, 1>, shape = array<i64: 4, 5>, tile = array<i64>} : () -> ()
  "samml.output"() {tensor = "Y"} : () -> ()
  %0 = "samml.root"() {node = "root"} : () -> !samml.ref<0 : i64>
  %1:2 = "samml.scan"(%0) {level = 0 : i64, node = "M_i", sequential = false, tensor = "M"} : (!samml.ref<0 : i64>) -> (!samml.crd<1 : i64>, !samml.ref<1 : i64>)
  %2 = "samml.repeat"(%0, %1#0) {node = "rep_i"} : (!samml.ref<0 : i64>, !samml.crd<1 : i64>) -> !samml.ref<1 : i64>
  %3 = "samml.locate"(%1#0, %2) {level = 0 : i64, node = "Q_i.loc", tensor = "Q"} : (!samml.crd<1 : i64>, !samml.ref<1 : i64>) -> !samml.ref<1 : i64>
  %4:2 = "samml.scan"(%1#1) {level = 1 : i64, node = "M_j", sequential = false, tensor = "M"} : (!samml.ref<1 : i64>) -> (!samml.crd<2 : i64>, !samml.ref<2 : i64>)
  %5 = "samml.repeat"(%2, %4#0) {node = "rep_j"} : (!samml.ref<1 : i64>, !samml.crd<2 : i64>) -> !samml.ref<2 : i64>
  %6 = "samml.locate"(%4#0, %5) {level = 0 : i64, node = "K_j.loc", tensor = "K"} : (!samml.crd<2 : i64>, !samml.ref<2 : i64>) -> !samml.ref<2 : i64>
  %7 = "samml.repeat"(%3, %4#0) {node = "rep_j'2"} : (!samml.ref<1 : i64>, !samml.crd<2 : i64>) -> !samml.ref<2 : i64>
  %8:2 = "samml.scan"(%7) {level = 1 : i64, node = "Q_k", sequential = false, tensor = "Q"} : (!samml.ref<2 : i64>) -> (!samml.crd<3 : i64>, !samml.ref<3 : i64>)
  %9 = "samml.repeat"(%6, %8#0) {node = "rep_k"} : (!samml.ref<2 : i64>, !samml.crd<3 : i64>) -> !samml.ref<3 : i64>
  %10 = "samml.locate"(%8#0, %9) {level = 1 : i64, node = "K_k.loc", tensor = "K"} : (!samml.crd<3 : i64>, !samml.ref<3 : i64>) -> !samml.ref<3 : i64>
  %11 = "samml.load"(%8#1) {node = "Q_val", sequential = false, tensor = "Q"} : (!samml.ref<3 : i64>) -> !samml.val<3 : i64>
  %12 = "samml.load"(%10) {node = "K_val", sequential = false, tensor = "K"} : (!samml.ref<3 : i64>) -> !samml.val<3 : i64>
  %13 = "samml.alu"(%11, %12) {constants = array<i1: false, false>, function = "mul", node = "mul", values = array<f64: 0.000000e+00, 0.000000e+00>} : (!samml.val<3 : i64>, !samml.val<3 : i64>) -> !samml.val<3 : i64>
  %14 = "samml.reduce"(%13) {function = "sum", node = "red_k"} : (!samml.val<3 : i64>) -> !samml.val<2 : i64>
  %15 = "samml.load"(%4#1) {node = "M_val", sequential = false, tensor = "M"} : (!samml.ref<2 : i64>) -> !samml.val<2 : i64>
  %16 = "samml.alu"(%15, %14) {constants = array<i1: false, false>, function = "mul", node = "mul'2", values = array<f64: 0.000000e+00, 0.000000e+00>} : (!samml.val<2 : i64>, !samml.val<2 : i64>) -> !samml.val<2 : i64>
  "samml.write"(%1#0) {level = 0 : i64, node = "write_Y_i", tensor = "Y"} : (!samml.crd<1 : i64>) -> ()
  "samml.write"(%4#0) {level = 1 : i64, node = "write_Y_j", tensor = "Y"} : (!samml.crd<2 : i64>) -> ()
  "samml.write_values"(%16) {node = "write_Y_val", tensor = "Y"} : (!samml.val<2 : i64>) -> ()
  "table.loop"() {indices = ["i"], node = "M_i"} : () -> ()
  "table.loop"() {indices = ["j"], node = "M_j"} : () -> ()
  "table.loop"() {indices = ["k"], node = "Q_k"} : () -> ()
  "table.stage"() {label = "Y", nodes = ["M_i", "rep_i", "Q_i.loc", "M_j", "rep_j", "K_j.loc", "M_val", "mul'2"]} : () -> ()
  "table.stage"() {label = "D", nodes = ["rep_j'2", "Q_k", "rep_k", "K_k.loc", "Q_val", "K_val", "mul", "red_k"]} : () -> ()
  %17 = "table.begin_step"() {title = "Y: loop i"} : () -> !table.step
  "table.cell"(%17) {column = "M[i, j]", row = "i", text = "LS = <M_i.ref>"} : (!table.step) -> ()
  "table.cell"(%17) {column = "Q[i, k]", row = "i", text = "Rep(root by <M_i.crd>)"} : (!table.step) -> ()
  "table.cell"(%17) {column = "Q[i, k]", row = "i", text = "Loc(<M_i.crd>, <rep_i>) = <Q_i.loc>"} : (!table.step) -> ()
  %18 = "table.begin_step"() {title = "Y: loop j"} : () -> !table.step
  "table.cell"(%18) {column = "M[i, j]", row = "j", text = "LS = <M_j.ref>"} : (!table.step) -> ()
  "table.cell"(%18) {column = "K[j, k]", row = "i", text = "Rep(root by <M_i.crd>)"} : (!table.step) -> ()
  "table.cell"(%18) {column = "K[j, k]", row = "j", text = "Rep(<rep_i> by <M_j.crd>)"} : (!table.step) -> ()
  "table.cell"(%18) {column = "K[j, k]", row = "j", text = "Loc(<M_j.crd>, <rep_j>) = <K_j.loc>"} : (!table.step) -> ()
  %19 = "table.begin_step"() {title = "D: loop k"} : () -> !table.step
  "table.cell"(%19) {column = "Q[i, k]", row = "j", text = "Rep(<Q_i.loc> by <M_j.crd>)"} : (!table.step) -> ()
  "table.cell"(%19) {column = "Q[i, k]", row = "k", text = "LS = <Q_k.ref>"} : (!table.step) -> ()
  "table.cell"(%19) {column = "K[j, k]", row = "k", text = "Rep(<K_j.loc> by <Q_k.crd>)"} : (!table.step) -> ()
  "table.cell"(%19) {column = "K[j, k]", row = "k", text = "Loc(<Q_k.crd>, <rep_k>) = <K_k.loc>"} : (!table.step) -> ()
  %20 = "table.begin_step"() {title = "D: values"} : () -> !table.step
  "table.cell"(%20) {column = "Q[i, k]", row = "val", text = "Val(<Q_k.ref>)"} : (!table.step) -> ()
  "table.cell"(%20) {column = "K[j, k]", row = "val", text = "Val(<K_k.loc>)"} : (!table.step) -> ()
  %21 = "table.begin_step"() {title = "D: sum over k"} : () -> !table.step
  "table.cell"(%21) {column = "D", row = "k", text = "Red_sum = <red_k>"} : (!table.step) -> ()
  "table.cell"(%21) {column = "D", row = "val", text = "<red_k>"} : (!table.step) -> ()
  %22 = "table.begin_step"() {title = "Y: values"} : () -> !table.step
  "table.cell"(%22) {column = "M[i, j]", row = "val", text = "Val(<M_j.ref>)"} : (!table.step) -> ()
  "table.cell"(%22) {column = "Y", row = "val", text = "<mul'2>"} : (!table.step) -> ()
  %23 = "table.view"() {indices = ["i", "k"], tensor = "Q"} : () -> !table.tree
  %24 = "table.view"() {indices = ["j", "k"], tensor = "K"} : () -> !table.tree
  %25 = "table.op"(%23, %24) {operator = "mul"} : (!table.tree, !table.tree) -> !table.tree
  %26 = "table.reduction"(%25) {free = ["i", "j"], label = "D", over = ["k"], reduction = "sum"} : (!table.tree) -> !table.tree
  %27 = "table.view"() {indices = ["i", "j"], tensor = "M"} : () -> !table.tree
  %28 = "table.op"(%27, %26) {operator = "mul"} : (!table.tree, !table.tree) -> !table.tree
  %29 = "table.reduction"(%28) {free = ["i", "j"], label = "Y", over = [], reduction = "sum"} : (!table.tree) -> !table.tree
  "table.evaluation"(%25) {around = ["i", "j", "k"], node = "mul", output = 0 : i64} : (!table.tree) -> ()
  "table.evaluation"(%26) {around = ["i", "j"], node = "mul", output = 0 : i64} : (!table.tree) -> ()
  "table.evaluation"(%28) {around = ["i", "j"], node = "mul'2", output = 0 : i64} : (!table.tree) -> ()
  "table.evaluation"(%29) {around = [], node = "mul'2", output = 0 : i64} : (!table.tree) -> ()
}
