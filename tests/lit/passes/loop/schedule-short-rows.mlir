// RUN: stepwell-opt %s -p "loop-schedule{target=x86-64-v3}" | filecheck %s

// Vectors go across rows.
// CHECK-LABEL: loop.kernel @rows
// CHECK-SAME:  "fuse(i, j); split(i_j, 32, tail=split)
// CHECK:       loop.for "i_j01"
// CHECK-NEXT:    loop.load %x {{.*}} floordiv 3{{.*}} mod 3{{.*}} vector<32xf32>
loop.kernel @rows(%x: memref<?x3xf32>) -> (%y: memref<?x3xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x3xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 3 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x3xf32>, f32
      %r = arith.negf %v : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x3xf32>
    }
  }
}

// Loops of one iteration leave no quotients.
// CHECK-LABEL: loop.kernel @three
// CHECK-SAME:  "fuse(j, l); fuse(i, j_l); split(i_j_l, 8, tail=split)
// CHECK:       loop.load %x ()[s0] -> ((s0 floordiv 3), 0, (s0 mod 3))() : memref<4x1x3xf32>, vector<8xf32>
loop.kernel @three(%x: memref<4x1x3xf32>) -> (%y: memref<4x1x3xf32>) {
  loop.for "i" %i to 4 {
    loop.for "j" %j to 1 {
      loop.for "l" %l to 3 {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %l) : memref<4x1x3xf32>, f32
        %r = arith.negf %v : f32
        loop.store %r, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %l) : f32, memref<4x1x3xf32>
      }
    }
  }
}

// A row that all others read, rows with gaps, columns, columns that are counted, whole vectors.
// CHECK-LABEL: loop.kernel @broadcast
// CHECK-NOT:   fuse
// CHECK-LABEL: loop.kernel @part
// CHECK-NOT:   fuse
// CHECK-LABEL: loop.kernel @transposed
// CHECK-NOT:   fuse
// CHECK-LABEL: loop.kernel @counted
// CHECK-NOT:   fuse
// CHECK-LABEL: loop.kernel @whole
// CHECK-NOT:   fuse
loop.kernel @broadcast(%x: memref<9x3xf32>, %b: memref<3xf32>) -> (%y: memref<9x3xf32>) {
  loop.for "i" %i to 9 {
    loop.for "j" %j to 3 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<9x3xf32>, f32
      %w = loop.load %b (d0) -> (d0)(%j) : memref<3xf32>, f32
      %r = arith.addf %v, %w : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<9x3xf32>
    }
  }
}
loop.kernel @part(%x: memref<9x4xf32>) -> (%y: memref<9x3xf32>) {
  loop.for "i" %i to 9 {
    loop.for "j" %j to 3 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<9x4xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<9x3xf32>
    }
  }
}
loop.kernel @transposed(%x: memref<3x9xf32>) -> (%y: memref<9x3xf32>) {
  loop.for "i" %i to 9 {
    loop.for "j" %j to 3 {
      %v = loop.load %x (d0, d1) -> (d1, d0)(%i, %j) : memref<3x9xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<9x3xf32>
    }
  }
}
loop.kernel @counted(%x: memref<9x3xf32>) -> (%y: memref<9x3xf32>) {
  loop.for "i" %i to 9 {
    loop.for "j" %j to 3 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<9x3xf32>, f32
      %k = arith.index_cast %j : index to i32
      %f = arith.sitofp %k : i32 to f32
      %r = arith.addf %v, %f : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<9x3xf32>
    }
  }
}
loop.kernel @whole(%x: memref<9x8xf32>) -> (%y: memref<9x8xf32>) {
  loop.for "i" %i to 9 {
    loop.for "j" %j to 8 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<9x8xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<9x8xf32>
    }
  }
}

// Filters of a group are the rows of a tile, and all places of their channels its lanes.
// CHECK-LABEL: loop.kernel @groups
// CHECK-SAME:  "split(j, 6, tail=peel); fuse(l, m); split(l_m, 16, tail=mask); reorder(i, j0, l_m0, j1, l_m1); split_border(l_m0, 0, 1);
// CHECK:       loop.for "j0" %j0 to 2
// CHECK:         loop.for "k" %k to 4 reduction carry({{.*}} : vector<6x16xf32> add)
// CHECK:           loop.load %x {{.*}} -> (0, ((d0 * 4) + d1), (s1 floordiv 5), (s1 mod 5))(%j0, %k)
// CHECK:         loop.for "ke" %ke to 4 reduction carry({{.*}} : vector<6x9xf32> add)
// CHECK:           loop.load %x {{.*}} -> (0, ((d0 * 4) + d1), (((s1 + 1) floordiv 5) + 3), ((s1 + 1) mod 5))(%j0, %ke)
loop.kernel @groups(%x: memref<1x8x5x5xf32>, %w: memref<12x4x1x1xf32> {loop.constant}) -> (%y: memref<1x12x5x5xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to 1 {
    loop.for "j" %j to 12 {
      loop.for "l" %l to 5 {
        loop.for "m" %m to 5 {
          %s = loop.for "k" %k to 4 reduction carry(%total = %zero : f32 add) {
            %p = loop.load %x (d0, d1, d2, d3, d4) -> (d0, d1 floordiv 6 * 4 + d2, d3, d4)(%i, %j, %k, %l, %m) : memref<1x8x5x5xf32>, f32
            %q = loop.load %w (d0, d1) -> (d0, d1, 0, 0)(%j, %k) : memref<12x4x1x1xf32>, f32
            %t = math.fma %p, %q, %total : f32
            loop.yield %t : f32
          }
          loop.store %s, %y (d0, d1, d2, d3) -> (d0, d1, d2, d3)(%i, %j, %l, %m) : f32, memref<1x12x5x5xf32>
        }
      }
    }
  }
}

// Vectors of 8, 8 and 4 columns, without masks: one tile of all, and all of a row that has no others.
// CHECK-LABEL: loop.kernel @products
// CHECK-SAME:  "split(l, 20, tail=mask); reorder(i, j, l0, l1); split(j, 4, tail=peel); vectorize(j1, l1); drop_unit_loops()"
// CHECK-NOT:   affine.min
// CHECK-LABEL: loop.kernel @filter
// CHECK-SAME:  "split(j, 28, tail=mask); reorder(i, j0, j1); vectorize(j1); unroll(k, 2); drop_unit_loops()"
loop.kernel @products(%x: memref<3x8x20xf32>, %w: memref<3x12x8xf32>) -> (%y: memref<3x12x20xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    loop.for "j" %j to 12 {
      loop.for "l" %l to 20 {
        %s = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add) {
          %a = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %k, %l) : memref<3x8x20xf32>, f32
          %b = loop.load %w (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : memref<3x12x8xf32>, f32
          %t = math.fma %a, %b, %acc : f32
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %l) : f32, memref<3x12x20xf32>
      }
    }
  }
}
loop.kernel @filter(%x: memref<4x30xf32>, %w: memref<4x3xf32>) -> (%y: memref<4x28xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 4 {
    loop.for "j" %j to 28 {
      %s = loop.for "k" %k to 3 reduction carry(%acc = %z : f32 add) {
        %a = loop.load %x (d0, d1, d2) -> (d0, (d1 + d2))(%i, %j, %k) : memref<4x30xf32>, f32
        %b = loop.load %w (d0, d1) -> (d0, d1)(%i, %k) : memref<4x3xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x28xf32>
    }
  }
}

// The columns of the last panel have a tile of their own, in the loop over matrices.
// CHECK-LABEL: loop.kernel @panels
// CHECK-SAME:  split_border(l0, 0, 1)
// CHECK:       loop.for "i" %i to 3 {
// CHECK-NOT:     affine.min
// CHECK:         vector<6x16xf32>
// CHECK-NOT:     affine.min
// CHECK:         vector<6x12xf32>
loop.kernel @panels(%x: memref<3x8x28xf32>, %w: memref<3x12x8xf32>) -> (%y: memref<3x12x28xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    loop.for "j" %j to 12 {
      loop.for "l" %l to 28 {
        %s = loop.for "k" %k to 8 reduction carry(%acc = %z : f32 add) {
          %a = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %k, %l) : memref<3x8x28xf32>, f32
          %b = loop.load %w (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %k) : memref<3x12x8xf32>, f32
          %t = math.fma %a, %b, %acc : f32
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %j, %l) : f32, memref<3x12x28xf32>
      }
    }
  }
}
