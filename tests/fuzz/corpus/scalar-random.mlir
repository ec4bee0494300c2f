// about: graph-fold-constant crashed on the reference of a scalar, which was no array
// way: {}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main() -> (tensor<f32> {graph.name = "result0"}) {
    %0 = graph.constant dense<7> : tensor<i64>
    %1 = graph.random_uniform %0 : (tensor<i64>) -> tensor<f32>
    func.return %1 : tensor<f32>
  }
}
