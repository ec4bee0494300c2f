// about: the verifier took a read in a loop without iterations, and so the split, for wrong
// way: {"before": "loop-split{kernel=twice loop=j factor=2 tail=cases cases=3}"}
// input: {"dtype": "f32", "shape": [7], "data": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
builtin.module attributes {stepwell.version = 1 : i64} {
  loop.kernel @twice(%x: memref<7xf32>) -> (%y: memref<7xf32>) {
    %h = loop.local : memref<8xf32>
    loop.for "i" %i to 1 {
      loop.for "j" %j to min (d0) -> (8, ((d0 * -8) + 1))(%i) {
        %n = affine.min affine_map<(d0, d1) -> (16, (((d0 * -128) + (d1 * -16)) + 7))> (%i, %j)
        %v = loop.load %x (d0, d1)[s0] -> ((((d0 * 128) + (d1 * 16)) + s0))(%i, %j) valid(0 : %n) : memref<7xf32>, vector<16xf32>
        loop.store %v, %h (d0, d1)[s0] -> ((((d0 * 128) + (d1 * 16)) + s0))(%i, %j) valid(0 : %n) : vector<16xf32>, memref<8xf32>
        %w = loop.load %h (d0, d1)[s0] -> ((((d0 * 128) + (d1 * 16)) + s0))(%i, %j) valid(0 : %n) : memref<8xf32>, vector<16xf32>
        loop.store %w, %y (d0, d1)[s0] -> ((((d0 * 128) + (d1 * 16)) + s0))(%i, %j) valid(0 : %n) : vector<16xf32>, memref<7xf32>
      }
    }
  }
  func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
    %y = graph.call_dps @twice(%x) : (tensor<7xf32>) -> tensor<7xf32>
    func.return %y : tensor<7xf32>
  }
}
