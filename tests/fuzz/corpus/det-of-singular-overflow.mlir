// about: the determinant of a singular matrix was NaN where the product of its other pivots overflows
// way: {"rounding": "kept"}
// input: {"dtype": "f32", "shape": [3, 3], "data": [1e+30, 0.0, 0.0, 0.0, -1e+30, 0.0, 0.0, 0.0, 0.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<3x3xf32> {graph.name = "x"}) -> (tensor<f32> {graph.name = "result0"}) {
    %0 = graph.det %x : (tensor<3x3xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
}
