// about: loops over a symbol that is to be 1 were not seen to store different elements
// way: {}
// input: {"dtype": "i64", "shape": [1], "data": [2]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%r: tensor<?xi64> {graph.name = "r", graph.dims = ["m"]}) -> (tensor<4xi32> {graph.name = "p"}, tensor<1xi32> {graph.name = "c"}, tensor<1xi32> {graph.name = "order"}) {
    %0 = graph.constant dense<1> : tensor<1xi64>
    %1 = graph.constant dense<0.0> : tensor<3x1xf32>
    %2, %3, %4 = graph.sort_edges %r, %0 of %1, %1 : (tensor<?xi64>, tensor<1xi64>, tensor<3x1xf32>, tensor<3x1xf32>) -> (tensor<4xi32>, tensor<1xi32>, tensor<1xi32>)
    func.return %2, %3, %4 : tensor<4xi32>, tensor<1xi32>, tensor<1xi32>
  }
}
