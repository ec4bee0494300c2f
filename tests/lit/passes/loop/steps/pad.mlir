// RUN: stepwell-opt %s -p "loop-pad{kernel=rows loop=i multiple=8}" | filecheck %s
// RUN: stepwell-opt %s -p "loop-pad{kernel=rows loop=i multiple=8},loop-split{kernel=rows loop=b factor=8 tail=mask},loop-drop-unit-loops,loop-vectorize{kernel=rows loops=b1}" | filecheck %s --check-prefix=WHOLE
// RUN: not stepwell-opt %s -p "loop-pad{kernel=rows loop=a multiple=8}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not stepwell-opt %s -p "loop-pad{kernel=rows loop=i multiple=0}" 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not stepwell-opt %s -p "loop-pad{kernel=rows loop=i multiple=7}" 2>&1 | filecheck %s --check-prefix=ALREADY
// RUN: not stepwell-opt %s -p "loop-pad{kernel=symbolic loop=i multiple=8}" 2>&1 | filecheck %s --check-prefix=SYMBOLIC

// NONE: loop-pad: loop "a" of @rows: local buffers that it fills, expected 1, got 0
// WRONG: loop-pad: loop "i" of @rows: wrong multiple, expected at least 1, got 0
// ALREADY: loop-pad: loop "i" of @rows: the rows of its buffer are a multiple of 7 already, got 7
// SYMBOLIC: loop-pad: loop "i" of @symbolic: its buffer has symbolic sizes, expected static ones, got memref<?xf32>

// CHECK-LABEL: loop.kernel @rows
// CHECK:       %[[h:.*]] = loop.local : memref<3x8xf32, #loop<space shared>>
// CHECK:       loop.store %{{.*}}, %[[h]] (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x8xf32, #loop<space shared>>
// CHECK:       loop.load %[[h]] (d0, d1) -> (d0, d1)(%a, %b) : memref<3x8xf32, #loop<space shared>>, f32
// WHOLE-LABEL: loop.kernel @rows
// WHOLE:       loop.load %[[h:.*]] (d0)[s0] -> (d0, s0)(%a) : memref<3x8xf32, #loop<space shared>>, vector<8xf32>
// WHOLE:       loop.store %{{.*}}, %y {{.*}} valid(0 : %{{.*}}) : vector<8xf32>, memref<3x7xf32>
loop.kernel @rows(%x: memref<3x7xf32>) -> (%y: memref<3x7xf32>) {
  %h = loop.local : memref<3x7xf32, #loop<space shared>>
  loop.for "i" %i to 3 {
    loop.for "j" %j to 7 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<3x7xf32>, f32
      loop.store %v, %h (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<3x7xf32, #loop<space shared>>
    }
  }
  loop.for "a" %a to 3 {
    loop.for "b" %b to 7 {
      %v = loop.load %h (d0, d1) -> (d0, d1)(%a, %b) : memref<3x7xf32, #loop<space shared>>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%a, %b) : f32, memref<3x7xf32>
    }
  }
}

loop.kernel @symbolic(%n: index) -> () {
  %z = arith.constant 0.0 : f32
  %h = loop.local(%n) : memref<?xf32>
  loop.for "i" %i to %n {
    loop.store %z, %h (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
