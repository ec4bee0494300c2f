// about: the first channel of a filter was divided by the number of filters of a group, which is 0
// way: {}
// input: {"dtype": "f32", "shape": [1, 4, 3], "data": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}
// input: {"dtype": "f32", "shape": [0, 1, 2], "data": []}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<1x4x3xf32> {graph.name = "x"}, %w: tensor<0x1x2xf32> {graph.name = "w"}) -> (tensor<1x0x2xf32> {graph.name = "y"}) {
    %0 = graph.conv %x, %w strides = [1] dilations = [1] groups = 4 : (tensor<1x4x3xf32>, tensor<0x1x2xf32>) -> tensor<1x0x2xf32>
    func.return %0 : tensor<1x0x2xf32>
  }
}
