// about: the reference, by LAPACK, lost a NaN below an infinite pivot: the determinant was infinite, not NaN
// way: {"rounding": "kept"}
// input: {"dtype": "f64", "shape": [2, 2], "data": [-Infinity, -0.0, NaN, 1.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<2x2xf64> {graph.name = "x"}) -> (tensor<f64> {graph.name = "result0"}) {
    %0 = graph.det %x : (tensor<2x2xf64>) -> tensor<f64>
    func.return %0 : tensor<f64>
  }
}
