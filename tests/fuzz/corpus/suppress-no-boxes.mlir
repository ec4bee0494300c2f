// about: a kernel that sorts boxes is invalid after `loop-schedule` where it is known that there are none: what is stored in loops of no iterations is still read
// way: {"rounding": "kept", "copy_indices": true, "primitives": 6, "choices": "rest of way 20706"}
// input: {"dtype": "f16", "shape": [0, 0, 4], "data": []}
// input: {"dtype": "f16", "shape": [0, 0, 0], "data": []}
// input: {"dtype": "i64", "shape": [], "data": [-5629289995150890410]}
// input: {"dtype": "f16", "shape": [], "data": [0.0047760009765625]}
// input: {"dtype": "f16", "shape": [], "data": [-0.372802734375]}
// input: {"dtype": "f16", "shape": [3], "data": [0.0212249755859375, 0.7314453125, -0.6005859375]}
// input: {"dtype": "i1", "shape": [0, 3, 0], "data": []}
// input: {"dtype": "f16", "shape": [], "data": [-2.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  func.func @main(%x0: tensor<?x?x4xf16> {graph.name = "x0", graph.dims = ["m", "m", ""]}, %x1: tensor<?x?x0xf16> {graph.name = "x1", graph.dims = ["m", "m", ""]}, %x2: tensor<i64> {graph.name = "x2"}, %x3: tensor<f16> {graph.name = "x3"}, %x4: tensor<f16> {graph.name = "x4"}, %x5: tensor<?xf16> {graph.name = "x5", graph.dims = ["n"]}, %x6: tensor<?x?x?xi1> {graph.name = "x6", graph.dims = ["m", "n", "m"]}, %x7: tensor<f16> {graph.name = "x7"}) -> (tensor<?x?x0xi64> {graph.name = "result0", graph.dims = ["m", "m", ""]}, tensor<?xf16> {graph.name = "result1", graph.dims = ["n"]}) {
    %0 = graph.suppress_boxes %x0, %x1, %x2, %x3, %x4 : (tensor<?x?x4xf16>, tensor<?x?x0xf16>, tensor<i64>, tensor<f16>, tensor<f16>) -> tensor<?x?x0xi64>
    %1 = graph.floor %x5 : (tensor<?xf16>) -> tensor<?xf16>
    func.return %0, %1 : tensor<?x?x0xi64>, tensor<?xf16>
  }
}
