#csr = #sparse_tensor.encoding<{ map = (row, column) -> (row : dense, column : compressed) }>
#left = affine_map<(i, k, j) -> (i, k)>
#right = affine_map<(i, k, j) -> (k, j)>
#result = affine_map<(i, k, j) -> (i, j)>

func.func private @layer(%A: tensor<8x8xf32, #csr>, %X: tensor<8x4xf32>, %W: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
  %T = linalg.generic {indexing_maps = [#left, #right, #result], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%A, %X : tensor<8x8xf32, #csr>, tensor<8x4xf32>) outs(%start : tensor<8x4xf32>) {
    ^bb0(%a: f32, %x: f32, %sum: f32):
      %product = arith.mulf %a, %x : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
  } -> tensor<8x4xf32>
  %Y = linalg.matmul ins(%T, %W : tensor<8x4xf32>, tensor<4x4xf32>) outs(%start : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %Y : tensor<8x4xf32>
}

func.func @main(%A: tensor<8x8xf32, #csr> {samml.name = "A"}, %X: tensor<8x4xf32> {samml.name = "X"},
                %W: tensor<4x4xf32> {samml.name = "W"}) -> tensor<8x4xf32> {
  %H = call @layer(%A, %X, %W) : (tensor<8x8xf32, #csr>, tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %Y = call @layer(%A, %H, %W) : (tensor<8x8xf32, #csr>, tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %Y : tensor<8x4xf32>
}
