// about: a result that is checked indices of a size without an upper bound had no place in the arena
// way: {}
// input: {"dtype": "i64", "shape": [5, 5], "data": [3, -3, 1, 2, 0, 2, 0, 1, 4, -1, -3, -3, 5, 6, 1, 5, 4, -3, 2, 0, 2, 1, 1, 4, 5]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x0: tensor<?x?xi64> {graph.name = "x0", graph.dims = ["n", "n"]}) -> (tensor<?xi64> {graph.name = "result0", graph.dims = ["size.0"]}) {
    %0 = graph.constant dense<3> : tensor<i64>
    %1 = graph.arange %0 : (tensor<i64>) -> tensor<?xi64>
    %2 = graph.check_indices %1 of %x0 axis = 0 : (tensor<?xi64>, tensor<?x?xi64>) -> tensor<?xi64>
    func.return %2 : tensor<?xi64>
  }
}
