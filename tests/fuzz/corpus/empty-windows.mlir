// about: the reference refused a window of 1 on a dimension of 0
// way: {}
// input: {"dtype": "f32", "shape": [2, 3, 0, 4], "data": []}
// input: {"dtype": "f32", "shape": [2, 3, 1, 3], "data": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x: tensor<2x3x0x4xf32> {graph.name = "x"}, %w: tensor<2x3x1x3xf32> {graph.name = "w"}) -> (tensor<2x3x0x3xf32> {graph.name = "result0"}, tensor<2x2x0x2xf32> {graph.name = "result1"}) {
    %0 = graph.pool max %x window = [1, 2] strides = [1, 1] dilations = [1, 1] : (tensor<2x3x0x4xf32>) -> tensor<2x3x0x3xf32>
    %1 = graph.conv %x, %w strides = [1, 1] dilations = [1, 1] groups = 1 : (tensor<2x3x0x4xf32>, tensor<2x3x1x3xf32>) -> tensor<2x2x0x2xf32>
    func.return %0, %1 : tensor<2x3x0x3xf32>, tensor<2x2x0x2xf32>
  }
}
