// about: the reference made a vector of a scalar
// way: {}
// input: {"dtype": "i8", "shape": [], "data": [-90]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<i8> {graph.name = "x"}) -> (tensor<i8> {graph.name = "result0"}) {
    %0 = graph.transpose %x permutation = [] : (tensor<i8>) -> tensor<i8>
    func.return %0 : tensor<i8>
  }
}
