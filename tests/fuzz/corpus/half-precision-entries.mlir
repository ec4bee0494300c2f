// about: SciPy copies no matrix of f16, and the reference of gelu cancelled in its tail
// way: {"opt_level": 0}
// input: {"shape": [1, 1], "csr": [{"dtype": "i32", "shape": [2], "data": [0, 1]}, {"dtype": "i32", "shape": [1], "data": [0]}, {"dtype": "f16", "shape": [1], "data": [1.0]}]}
// input: {"dtype": "f16", "shape": [1, 1], "data": [1.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%a: tensor<1x1xf16, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>> {graph.name = "a", graph.nnz = "n"}, %x: tensor<1x1xf16> {graph.name = "x"}) -> (tensor<1x1xf16> {graph.name = "y"}, tensor<1x1xbf16> {graph.name = "z"}) {
    %0 = graph.spmm %a, %x : (tensor<1x1xf16, #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>>, tensor<1x1xf16>) -> tensor<1x1xf16>
    %1 = graph.constant dense<-5.000000e+00> : tensor<1x1xbf16>
    %2 = graph.gelu %1 approximate = none : (tensor<1x1xbf16>) -> tensor<1x1xbf16>
    func.return %0, %2 : tensor<1x1xf16>, tensor<1x1xbf16>
  }
}
