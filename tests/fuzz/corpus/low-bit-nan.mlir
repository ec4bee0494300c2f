// about: NaN of low-bit floats counted as different
// way: {"before": "graph-cancel-transposes"}
// input: {"dtype": "f8E4M3FN", "shape": [2, 3], "data": [1.0, NaN, 2.0, NaN, 0.0, -1.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<2x3xf8E4M3FN> {graph.name = "x"}) -> (tensor<3x2xf8E4M3FN> {graph.name = "result0"}) {
    %0 = graph.transpose %x permutation = [1, 0] : (tensor<2x3xf8E4M3FN>) -> tensor<3x2xf8E4M3FN>
    func.return %0 : tensor<3x2xf8E4M3FN>
  }
}
