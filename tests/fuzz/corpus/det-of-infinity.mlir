// about: a determinant with an infinity was NaN
// way: {"rounding": "kept"}
// input: {"dtype": "f32", "shape": [2, 2], "data": [0.75, -Infinity, 0.5, 1.75]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<2x2xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "result0"}) {
    %0 = graph.det %x : (tensor<2x2xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
}
