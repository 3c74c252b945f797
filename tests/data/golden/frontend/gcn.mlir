#loc = loc(unknown)
#loc1 = loc("models/gcn.py":33:0)
#loc3 = loc("models/gcn.py":22:0)
#loc4 = loc("models/gcn.py":32:0)
#map = affine_map<(d0, d1) -> ()>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> (d1)>
#map6 = affine_map<(d0) -> ()>
#map7 = affine_map<(d0) -> (d0)>
#map8 = affine_map<(d0, d1) -> (d0)>
#sparse = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
#loc5 = loc("@log_softmax."(#loc1))
#loc7 = loc("@_sparse_mm"(#loc3))
#loc8 = loc("@add"(#loc3))
#loc9 = loc("@relu"(#loc4))
#loc12 = loc("layer1"(#loc7))
#loc13 = loc("layer1"(#loc8))
#loc15 = loc("layer2"(#loc7))
#loc16 = loc("layer2"(#loc8))
module {
  func.func @gcn(%arg0: tensor<34x16xf32> {samml.name = "layer1.weight"} loc(unknown), %arg1: tensor<16xf32> {samml.name = "layer1.bias"} loc(unknown), %arg2: tensor<16x4xf32> {samml.name = "layer2.weight"} loc(unknown), %arg3: tensor<4xf32> {samml.name = "layer2.bias"} loc(unknown), %arg4: tensor<34x34xf32, #sparse> {samml.name = "adj"} loc(unknown), %arg5: tensor<34x34xf32, #sparse> {samml.name = "x"} loc(unknown)) -> tensor<34x4xf32> {
    %cst = arith.constant 0.000000e+00 : f32 loc(#loc)
    %c0_i64 = arith.constant 0 : i64 loc(#loc5)
    %cst_0 = arith.constant 0xFF800000 : f32 loc(#loc5)
    %0 = tensor.empty() : tensor<34x16xf32> loc(#loc11)
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : f32) outs(%0 : tensor<34x16xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc(unknown)):
      linalg.yield %in : f32 loc(#loc)
    } -> tensor<34x16xf32> loc(#loc11)
    %2 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg5, %arg0 : tensor<34x34xf32, #sparse>, tensor<34x16xf32>) outs(%1 : tensor<34x16xf32>) {
    ^bb0(%in: f32 loc(unknown), %in_1: f32 loc(unknown), %out: f32 loc(unknown)):
      %22 = arith.mulf %in, %in_1 : f32 loc(#loc)
      %23 = arith.addf %out, %22 : f32 loc(#loc)
      linalg.yield %23 : f32 loc(#loc)
    } -> tensor<34x16xf32> loc(#loc11)
    %3 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg4, %2 : tensor<34x34xf32, #sparse>, tensor<34x16xf32>) outs(%1 : tensor<34x16xf32>) {
    ^bb0(%in: f32 loc(unknown), %in_1: f32 loc(unknown), %out: f32 loc(unknown)):
      %22 = arith.mulf %in, %in_1 : f32 loc(#loc)
      %23 = arith.addf %out, %22 : f32 loc(#loc)
      linalg.yield %23 : f32 loc(#loc)
    } -> tensor<34x16xf32> loc(#loc12)
    %4 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel"]} ins(%3, %arg1 : tensor<34x16xf32>, tensor<16xf32>) outs(%0 : tensor<34x16xf32>) {
    ^bb0(%in: f32 loc("layer1"(#loc7)), %in_1: f32 loc("layer1"(#loc8)), %out: f32 loc("layer1"(#loc8))):
      %22 = arith.addf %in, %in_1 : f32 loc(#loc13)
      linalg.yield %22 : f32 loc(#loc13)
    } -> tensor<34x16xf32> loc(#loc13)
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<34x16xf32>) outs(%0 : tensor<34x16xf32>) {
    ^bb0(%in: f32 loc("layer1"(#loc8)), %out: f32 loc("@relu"(#loc4))):
      %22 = arith.cmpf ugt, %in, %cst : f32 loc(#loc9)
      %23 = arith.select %22, %in, %cst : f32 loc(#loc9)
      linalg.yield %23 : f32 loc(#loc9)
    } -> tensor<34x16xf32> loc(#loc9)
    %6 = tensor.empty() : tensor<34x4xf32> loc(#loc14)
    %7 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : f32) outs(%6 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc(unknown)):
      linalg.yield %in : f32 loc(#loc)
    } -> tensor<34x4xf32> loc(#loc14)
    %8 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%5, %arg2 : tensor<34x16xf32>, tensor<16x4xf32>) outs(%7 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc(unknown), %in_1: f32 loc(unknown), %out: f32 loc(unknown)):
      %22 = arith.mulf %in, %in_1 : f32 loc(#loc)
      %23 = arith.addf %out, %22 : f32 loc(#loc)
      linalg.yield %23 : f32 loc(#loc)
    } -> tensor<34x4xf32> loc(#loc14)
    %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg4, %8 : tensor<34x34xf32, #sparse>, tensor<34x4xf32>) outs(%7 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc(unknown), %in_1: f32 loc(unknown), %out: f32 loc(unknown)):
      %22 = arith.mulf %in, %in_1 : f32 loc(#loc)
      %23 = arith.addf %out, %22 : f32 loc(#loc)
      linalg.yield %23 : f32 loc(#loc)
    } -> tensor<34x4xf32> loc(#loc15)
    %10 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel"]} ins(%9, %arg3 : tensor<34x4xf32>, tensor<4xf32>) outs(%6 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc("layer2"(#loc7)), %in_1: f32 loc("layer2"(#loc8)), %out: f32 loc("layer2"(#loc8))):
      %22 = arith.addf %in, %in_1 : f32 loc(#loc16)
      linalg.yield %22 : f32 loc(#loc16)
    } -> tensor<34x4xf32> loc(#loc16)
    %11 = tensor.empty() : tensor<34xi64> loc(#loc5)
    %12 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel"]} ins(%c0_i64 : i64) outs(%11 : tensor<34xi64>) {
    ^bb0(%in: i64 loc(unknown), %out: i64 loc(unknown)):
      linalg.yield %in : i64 loc(#loc)
    } -> tensor<34xi64> loc(#loc5)
    %13 = tensor.empty() : tensor<34xf32> loc(#loc5)
    %14 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel"]} ins(%cst_0 : f32) outs(%13 : tensor<34xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc(unknown)):
      linalg.yield %in : f32 loc(#loc)
    } -> tensor<34xf32> loc(#loc5)
    %15:2 = linalg.generic {indexing_maps = [#map1, #map8, #map8], iterator_types = ["parallel", "reduction"]} ins(%10 : tensor<34x4xf32>) outs(%14, %12 : tensor<34xf32>, tensor<34xi64>) {
    ^bb0(%in: f32 loc("layer2"(#loc8)), %out: f32 loc("@log_softmax."(#loc1)), %out_1: i64 loc("@log_softmax."(#loc1))):
      %22 = linalg.index 1 : index loc(#loc5)
      %23 = arith.index_cast %22 : index to i64 loc(#loc5)
      %24 = arith.maximumf %in, %out : f32 loc(#loc5)
      %25 = arith.cmpf ogt, %in, %out : f32 loc(#loc5)
      %26 = arith.select %25, %23, %out_1 : i64 loc(#loc5)
      linalg.yield %24, %26 : f32, i64 loc(#loc5)
    } -> (tensor<34xf32>, tensor<34xi64>) loc(#loc5)
    %16 = linalg.generic {indexing_maps = [#map1, #map8, #map1], iterator_types = ["parallel", "parallel"]} ins(%10, %15#0 : tensor<34x4xf32>, tensor<34xf32>) outs(%6 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc("layer2"(#loc8)), %in_1: f32 loc("@log_softmax."(#loc1)), %out: f32 loc("@log_softmax."(#loc1))):
      %22 = arith.subf %in, %in_1 : f32 loc(#loc5)
      linalg.yield %22 : f32 loc(#loc5)
    } -> tensor<34x4xf32> loc(#loc5)
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%16 : tensor<34x4xf32>) outs(%6 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc("@log_softmax."(#loc1)), %out: f32 loc("@log_softmax."(#loc1))):
      %22 = math.exp %in : f32 loc(#loc5)
      linalg.yield %22 : f32 loc(#loc5)
    } -> tensor<34x4xf32> loc(#loc5)
    %18 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel"]} ins(%cst : f32) outs(%13 : tensor<34xf32>) {
    ^bb0(%in: f32 loc(unknown), %out: f32 loc(unknown)):
      linalg.yield %in : f32 loc(#loc)
    } -> tensor<34xf32> loc(#loc5)
    %19 = linalg.generic {indexing_maps = [#map1, #map8], iterator_types = ["parallel", "reduction"]} ins(%17 : tensor<34x4xf32>) outs(%18 : tensor<34xf32>) {
    ^bb0(%in: f32 loc("@log_softmax."(#loc1)), %out: f32 loc("@log_softmax."(#loc1))):
      %22 = arith.addf %in, %out : f32 loc(#loc5)
      linalg.yield %22 : f32 loc(#loc5)
    } -> tensor<34xf32> loc(#loc5)
    %20 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel"]} ins(%19 : tensor<34xf32>) outs(%13 : tensor<34xf32>) {
    ^bb0(%in: f32 loc("@log_softmax."(#loc1)), %out: f32 loc("@log_softmax."(#loc1))):
      %22 = math.log %in : f32 loc(#loc5)
      linalg.yield %22 : f32 loc(#loc5)
    } -> tensor<34xf32> loc(#loc5)
    %21 = linalg.generic {indexing_maps = [#map1, #map8, #map1], iterator_types = ["parallel", "parallel"]} ins(%16, %20 : tensor<34x4xf32>, tensor<34xf32>) outs(%6 : tensor<34x4xf32>) {
    ^bb0(%in: f32 loc("@log_softmax."(#loc1)), %in_1: f32 loc("@log_softmax."(#loc1)), %out: f32 loc("@log_softmax."(#loc1))):
      %22 = arith.subf %in, %in_1 : f32 loc(#loc5)
      linalg.yield %22 : f32 loc(#loc5)
    } -> tensor<34x4xf32> loc(#loc5)
    return %21 : tensor<34x4xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("models/gcn.py":21:0)
#loc6 = loc("@_sparse_mm"(#loc2))
#loc10 = loc("@matmul"(#loc2))
#loc11 = loc("layer1"(#loc6))
#loc14 = loc("layer2"(#loc10))
