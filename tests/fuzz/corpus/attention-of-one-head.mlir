// about: loops over heads of k, a symbol that is to be 1, were not seen to store different elements
// way: {}
// input: {"dtype": "f32", "shape": [1, 1, 1], "data": [0.5]}
// input: {"dtype": "f32", "shape": [1, 1, 1], "data": [2.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%q: tensor<1x?x1xf32> {graph.name = "q", graph.dims = ["", "m", ""]}, %k: tensor<?x?x1xf32> {graph.name = "k", graph.dims = ["m", "m", ""]}) -> (tensor<1x?x1xf32> {graph.name = "y"}) {
    %0 = graph.attention %q, %k, %k scale = 0.5 softcap = 0.0 left = -1 right = -1 at_end = false safe = false : (tensor<1x?x1xf32>, tensor<?x?x1xf32>, tensor<?x?x1xf32>) -> tensor<1x?x1xf32>
    func.return %0 : tensor<1x?x1xf32>
  }
}
