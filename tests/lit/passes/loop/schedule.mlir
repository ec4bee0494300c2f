// RUN: stepwell-opt %s -p "loop-schedule{target=x86-64-v4}" | filecheck %s --check-prefix=V4
// RUN: stepwell-opt %s -p "loop-schedule{target=x86-64-v3}" | filecheck %s --check-prefix=V3
// RUN: stepwell-opt %s -p "loop-schedule{target=x86-64-v4},loop-schedule{target=x86-64-v4}" | filecheck %s --check-prefix=V4
// RUN: stepwell-opt %s -p 'loop-schedule{trace="@dense: split(j, 8, tail=mask); vectorize(i, j1) @relu: tiles(i)"}' | filecheck %s --check-prefix=TRACE
// RUN: not stepwell-opt %s -p 'loop-schedule{trace="tiles(i)"}' 2>&1 | filecheck %s --check-prefix=WHICH
// RUN: not stepwell-opt %s -p 'loop-schedule{trace="@dense: tiles(i); tiles(k)"}' 2>&1 | filecheck %s --check-prefix=STEP
// RUN: stepwell-opt %s -p "loop-schedule{target=x86-64-v4 threads=2}" | filecheck %s --check-prefix=THREADS
// RUN: not stepwell-opt %s -p "loop-schedule{target=z80}" 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not stepwell-opt %s -p "loop-schedule{threads=0}" 2>&1 | filecheck %s --check-prefix=NONE

// TARGET: target: unknown name
// NONE: loop-schedule: wrong threads, expected 1 to 256, got 0
// WHICH: trace: which kernel is meant is not said, expected one of @dense
// STEP: trace for @dense: step 2, tiles(k): loop-tiles: loop "k" of @dense: it carries values from one iteration to the next, expected a loop that carries nothing, got reduction

// A contraction: a register tile, the constant in panels, what is left of the rows in a smaller tile.
// V4-LABEL: loop.kernel @dense
// V4-SAME:  %w: memref<4x24x32xf32> {loop.constant, loop.packing = affine_map<(d0, d1, d2) -> (((d0 * 32) + d2), d1)>}
// V4-SAME:  attributes {loop.schedule = "split(j, 32, tail=mask); reorder(j0, i, j1); pack(1, j0, k, j1); split(i, 9, tail=peel); vectorize(i1, j1, i1t, j1t)"} {
// TRACE-LABEL: loop.kernel @dense
// TRACE-SAME: attributes {loop.schedule = "split(j, 8, tail=mask); vectorize(i, j1)"} {
// TRACE:       vector<53x8xf32>
// V4:       loop.for "j0" %j0 to 4 {
// V4:         loop.for "i0" %i0 to 5 {
// V4:           loop.for "k" %k to 24 reduction carry(%{{.*}} = %{{.*}} : vector<9x32xf32> add)
// V4:             loop.load %x {{.*}} vector<9x1xf32>
// V4:             loop.load %w (d0, d1)[s0, s1] -> (d0, d1, s1)(%j0, %k) : memref<4x24x32xf32>, vector<1x32xf32>
// V4:         loop.for "kt" %kt to 24 reduction carry(%{{.*}} = %{{.*}} : vector<8x32xf32> add)
// V3-LABEL: loop.kernel @dense
// V3-SAME:  %w: memref<8x24x16xf32>
// V3:           loop.for "k" %k to 24 reduction carry(%{{.*}} = %{{.*}} : vector<6x16xf32> add)
loop.kernel @dense(%x: memref<53x24xf32>, %w: memref<128x24xf32> {loop.constant}, %b: memref<128xf32>) -> (%y: memref<53x128xf32>) {
  loop.for "i" %i to 53 {
    loop.for "j" %j to 128 {
      %b0 = loop.load %b (d0) -> (d0)(%j) : memref<128xf32>, f32
      %s = loop.for "k" %k to 24 reduction carry(%acc = %b0 : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<53x24xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<128x24xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<53x128xf32>
    }
  }
}

// Rows of an unknown number: a tile for each number that may be left. One or two rows run together
// with the last tile, where that does not spill. Rows that are left of a batch are added up in the
// order of whole tiles; a smaller batch has partial sums of its own.
// V4-LABEL: loop.kernel @any_rows
// V4-SAME:  "split(j, 32, tail=mask); reorder(i, j0, j1); pack(1, j0, k, j1); split(i, 8, tail=cases, cases=10, alone=3); vectorize(i1, j1, i1t1, j1t1, i1t2, j1t2, {{.*}}, i1t7, j1t7, i1t9, j1t9, i1t10, j1t10, i1t11, j1t11);
// V4:       loop.for "i00" {{.*}} tiles
// V4:         loop.for "k" {{.*}} vector<8x32xf32>
// V4:         loop.for "kt1" {{.*}} unroll 4 {{.*}} vector<1x32xf32>
// V4:         loop.for "kt7" {{.*}} vector<7x32xf32>
// V4:         loop.for "kt9" {{.*}} vector<9x32xf32>
// V4:         loop.for "kt10" {{.*}} vector<10x32xf32>
// V4:         loop.for "kt11" {{.*}} reduction carry{{.*}} vector<3x32xf32>
// V3-LABEL: loop.kernel @any_rows
// V3-SAME:  split(i, 6, tail=cases, alone=2); vectorize(i1, j1, i1t1, j1t1, {{.*}}, i1t5, j1t5, i1t7, j1t7, i1t8, j1t8);
loop.kernel @any_rows(%x: memref<?x24xf32>, %w: memref<64x24xf32> {loop.constant}) -> (%y: memref<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x24xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 64 {
      %s = loop.for "k" %k to 24 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x24xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<64x24xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x64xf32>
    }
  }
}

// A tile with few multiplications: a masked one computes what is left of the rows.
// V4-LABEL: loop.kernel @few_steps
// V4-SAME:  split(i, 8, tail=split); vectorize(i1, j1, i1t, j1t);
// V4:         loop.for "k" {{.*}} vector<8x16xf32>
// V4:         loop.for "kt" {{.*}} vector<8x16xf32>
// V4:         loop.store {{.*}} valid(0 : %{{.*}}) : vector<8x16xf32>
// V4-NOT:     loop.for
// V3-LABEL: loop.kernel @few_steps
// V3-SAME:  split(i, 6, tail=split); vectorize(i1, j1, i1t, j1t);
loop.kernel @few_steps(%x: memref<?x8xf32>, %w: memref<16x8xf32> {loop.constant}) -> (%y: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %zero = arith.constant 0.000000e+00 : f32
  loop.for "i" %i to min (d0) -> (d0)(%n) {
    loop.for "j" %j to 16 {
      %s = loop.for "k" %k to 8 reduction carry(%acc = %zero : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x8xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<16x8xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x16xf32>
    }
  }
}

// Loads run along one loop and stores along another: squares of vectors, whole ones and what is left.
// V4-LABEL: loop.kernel @transpose
// V4-SAME:  "split(j, 16, tail=mask); reorder(i, j1); split(i, 16, tail=split); vectorize(j1, i1); vectorize(j1t, i1t)"}
// V4:       loop.load %x {{.*}} -> (((d0 * 16) + s1), ((d1 * 16) + s0))({{.*}}) : memref<100x64xf32>, vector<16x16xf32>
// V4:       loop.store {{.*}} vector<16x16xf32>, memref<64x100xf32>
// V4:       loop.load %x {{.*}} valid(1 : %{{.*}}) : memref<100x64xf32>, vector<16x16xf32>
// V3-LABEL: loop.kernel @transpose
// V3:       loop.load %x {{.*}} vector<8x8xf32>
loop.kernel @transpose(%x: memref<100x64xf32>) -> (%y: memref<64x100xf32>) {
  loop.for "j" %j to 64 {
    loop.for "i" %i to 100 {
      %v = loop.load %x (d0, d1) -> (d1, d0)(%j, %i) : memref<100x64xf32>, f32
      loop.store %v, %y (d0, d1) -> (d0, d1)(%j, %i) : f32, memref<64x100xf32>
    }
  }
}

// One batch is nothing to share: the first loop of enough iterations is, here that over panels.
// V4-LABEL: loop.kernel @one_batch
// V4:       loop.for "j0" %j0 to 4 tiles {
// V4:         loop.for "i0" %i0 to 10 {
// V3-LABEL: loop.kernel @one_batch
// V3:       loop.for "j0" %j0 to 8 tiles {
loop.kernel @one_batch(%x: memref<1x120x128xf32>, %w: memref<128x128xf32> {loop.constant}) -> (%y: memref<1x120x128xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 1 {
    loop.for "i" %i to 120 {
      loop.for "j" %j to 128 {
        %s = loop.for "k" %k to 128 reduction carry(%acc = %z : f32 add) {
          %p = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %i, %k) : memref<1x120x128xf32>, f32
          %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<128x128xf32>, f32
          %t = math.fma %p, %q, %acc : f32
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %i, %j) : f32, memref<1x120x128xf32>
      }
    }
  }
}

// Rows that are one tile leave no loop over tiles; the loop around them is shared.
// V4-LABEL: loop.kernel @few_rows
// V4:       loop.for "b" %b to 64 tiles {
// V4:         loop.for "k" %k to 64 reduction carry(%{{.*}} = %{{.*}} : vector<7x32xf32> add)
// V3-LABEL: loop.kernel @few_rows
loop.kernel @few_rows(%x: memref<64x7x64xf32>, %w: memref<64x64xf32> {loop.constant}) -> (%y: memref<64x7x64xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 64 {
    loop.for "i" %i to 7 {
      loop.for "j" %j to 64 {
        %s = loop.for "k" %k to 64 reduction carry(%acc = %z : f32 add) {
          %p = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %i, %k) : memref<64x7x64xf32>, f32
          %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<64x64xf32>, f32
          %t = math.fma %p, %q, %acc : f32
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %i, %j) : f32, memref<64x7x64xf32>
      }
    }
  }
}

// Weights that no cache keeps are asked for, half a row at each of two reads, and tiles are several panels.
// V4-LABEL: loop.kernel @streamed
// V4:       loop.for "j00" %j00 to 32 tiles {
// V4-NEXT:    loop.for "j01" %j01 to 2 {
// V4-NEXT:      loop.for "i0" %i0 to 2 {
// V4:             loop.prefetch %w {{.*}} : memref<64x2048x32xf32>
// V3-LABEL: loop.kernel @streamed
loop.kernel @streamed(%x: memref<16x2048xf32>, %w: memref<2048x2048xf32> {loop.constant}) -> (%y: memref<16x2048xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 16 {
    loop.for "j" %j to 2048 {
      %s = loop.for "k" %k to 2048 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<16x2048xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%j, %k) : memref<2048x2048xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<16x2048xf32>
    }
  }
}

// Weights that a cache keeps only in part are prefetched one panel ahead, while tiles of rows read the one before.
// V4-LABEL: loop.kernel @next_panel
// V4:       loop.for "j0" %j0 to 32 tiles {
// V4-NEXT:    loop.for "i0" %i0 to 2 {
// V4:             loop.for "k0" %k0 to 4 reduction carry
// V4-NEXT:          loop.for "k1" %k1 to 256 reduction carry
// V4-NEXT:            loop.prefetch %w (d0, d1, d2, d3) -> (d0, 512, (((d1 * 16384) + (d2 * 4096)) + (d3 * 16)))(%j0, %i0, %k0, %k1) : memref<32x1024x32xf32>
// V3-LABEL: loop.kernel @next_panel
loop.kernel @next_panel(%x: memref<16x1024xf32>, %w: memref<1024x1024xf32> {loop.constant}) -> (%y: memref<16x1024xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 16 {
    loop.for "j" %j to 1024 {
      %s = loop.for "k" %k to 1024 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<16x1024xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<1024x1024xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<16x1024xf32>
    }
  }
}

// The rows of a tile are those of the loop that has several, though the one over a batch of 1 is inside of it.
// V4-LABEL: loop.kernel @batch_of_one
// V4:       reduction carry(%{{.*}} : vector<12x32xf32> add)
// V3-LABEL: loop.kernel @batch_of_one
// V3:       reduction carry(%{{.*}} : vector<6x16xf32> add)
loop.kernel @batch_of_one(%x: memref<12x1x64xf32>, %w: memref<64x64xf32> {loop.constant}) -> (%y: memref<12x1x64xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 12 {
    loop.for "b" %b to 1 {
      loop.for "j" %j to 64 {
        %s = loop.for "k" %k to 64 reduction carry(%acc = %z : f32 add) {
          %p = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%i, %b, %k) : memref<12x1x64xf32>, f32
          %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<64x64xf32>, f32
          %t = math.fma %p, %q, %acc : f32
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0, d1, d2)(%i, %b, %j) : f32, memref<12x1x64xf32>
      }
    }
  }
}

// Sums of parts are computed in one loop: six rows of four vectors of 16, and their weights are interleaved.
// V4-LABEL: loop.kernel @parts
// V4-SAME:  %w: memref<4x9x4x16xf32>
// V4:         %a, %b, %c, %d = loop.for "k" %k to 9 reduction carry(%acc = {{.*}} : vector<6x16xf32> add) {
// V3-LABEL: loop.kernel @parts
// V3-SAME:  %w: memref<8x9x4x8xf32>
// V3:         %a, %b, %c, %d = loop.for "k" %k to 9 reduction carry(%acc = {{.*}} : vector<3x8xf32> add) {
loop.kernel @parts(%x: memref<12x9xf32>, %w: memref<9x256xf32> {loop.constant}) -> (%y: memref<12x64xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 12 {
    loop.for "j" %j to 64 {
      %a = loop.for "k" %k to 9 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<12x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<9x256xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %b = loop.for "k1" %k to 9 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<12x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1 + 64)(%k, %j) : memref<9x256xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %c = loop.for "k2" %k to 9 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<12x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1 + 128)(%k, %j) : memref<9x256xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %d = loop.for "k3" %k to 9 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<12x9xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1 + 192)(%k, %j) : memref<9x256xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      %ab = arith.mulf %a, %b : f32
      %cd = arith.mulf %c, %d : f32
      %r = arith.addf %ab, %cd : f32
      loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<12x64xf32>
    }
  }
}

// The next rows of an operand that is larger than a cache are prefetched as well.
// V4-LABEL: loop.kernel @many_rows
// V4:       loop.for "k"
// V4-NEXT:    loop.prefetch %x (d0, d1) -> ((d0 * 8), ((d1 * 8) + 2048))(%i0, %k) : memref<2048x256xf32>
// V3-LABEL: loop.kernel @many_rows
loop.kernel @many_rows(%x: memref<2048x256xf32>, %w: memref<256x256xf32> {loop.constant}) -> (%y: memref<2048x256xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 2048 {
    loop.for "j" %j to 256 {
      %s = loop.for "k" %k to 256 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<2048x256xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<256x256xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<2048x256xf32>
    }
  }
}

// Panels of an operand that comes with each call are copied dense, lanes that are not there left out.
// V4-LABEL: loop.kernel @large
// V4:       loop.for "j0" %j0 to 16 tiles {
// V4-NEXT:    %[[copy:.*]] = loop.local : memref<511x32xf32>
// V4:           loop.store %{{.*}}, %[[copy]] (d0)[s0, s1] -> (d0, s1)(%k_) : vector<1x32xf32>, memref<511x32xf32>
// V4:           loop.load %[[copy]] (d0, d1)[s0, s1] -> (((d0 * 256) + d1), s1)(%k0, %k1) : memref<511x32xf32>, vector<1x32xf32>
// V3-LABEL: loop.kernel @large
// V3:         loop.local : memref<511x16xf32>
loop.kernel @large(%x: memref<100x511xf32>, %w: memref<511x511xf32>) -> (%y: memref<100x511xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 100 {
    loop.for "j" %j to 511 {
      %s = loop.for "k" %k to 511 reduction carry(%acc = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<100x511xf32>, f32
        %q = loop.load %w (d0, d1) -> (d0, d1)(%k, %j) : memref<511x511xf32>, f32
        %t = math.fma %p, %q, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<100x511xf32>
    }
  }
}

// Both operands follow the lanes: the rows of a tile are positions, for which filters are loaded once.
// V4-LABEL: loop.kernel @each_channel
// V4-SAME:  %w: memref<1x2x3x3x16xf32> {loop.constant, loop.packing =
// V4-SAME:  "split(m, 16, tail=mask); reorder(i, j, l, m0, m1); pack(1, m0, i, k, k1, m1); vectorize(l, m1); unroll(k1, 2); drop_unit_loops()"
// V4:           loop.for "k1" %k1 to 3 reduction unroll 2 carry(%{{.*}} = %{{.*}} : vector<7x16xf32> add)
// V4:               loop.load %x {{.*}} vector<7x16xf32>
// V4:               loop.load %w {{.*}} vector<1x16xf32>
// V3-LABEL: loop.kernel @each_channel
// V3:           reduction carry(%{{.*}} = %{{.*}} : vector<4x16xf32> add)
loop.kernel @each_channel(%x: memref<2x15x15x16xf32>, %w: memref<32x3x3xf32> {loop.constant}) -> (%y: memref<2x7x7x16xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 2 {
    loop.for "j" %j to 7 {
      loop.for "l" %l to 7 {
        loop.for "m" %m to 16 {
          %s = loop.for "k" %k to 3 reduction carry(%a = %z : f32 add) {
            %r = loop.for "k1" %k1 to 3 reduction carry(%b = %a : f32 add) {
              %p = loop.load %x (d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d2, d3 * 2 + d4, d5)(%i, %j, %k, %l, %k1, %m) : memref<2x15x15x16xf32>, f32
              %q = loop.load %w (d0, d1, d2, d3) -> (d0 * 16 + d1, d2, d3)(%i, %m, %k, %k1) : memref<32x3x3xf32>, f32
              %t = math.fma %p, %q, %b : f32
              loop.yield %t : f32
            }
            loop.yield %r : f32
          }
          loop.store %s, %y (d0, d1, d2, d3) -> (d0, d1, d2, d3)(%i, %j, %l, %m) : f32, memref<2x7x7x16xf32>
        }
      }
    }
  }
}

// Elementwise statements: several vectors at a time, what is left under a mask.
// TRACE-LABEL: loop.kernel @relu
// TRACE-SAME: attributes {loop.schedule = "tiles(i)"} {
// TRACE-NEXT:  arith.constant
// TRACE-NEXT:  loop.for "i" %i to 1000 tiles {
// TRACE-LABEL: loop.kernel @relu_any
// TRACE:       loop.for "i00"
// V4-LABEL: loop.kernel @relu
// V4:       loop.for "i0" %i0 to 15 {
// V4:         loop.load %x (d0)[s0] -> (((d0 * 64) + s0))(%i0) : memref<1000xf32>, vector<64xf32>
// V4:       %[[n:.*]] = arith.constant 40 : index
// V4:       loop.load %x ()[s0] -> ((s0 + 960))() valid(0 : %[[n]]) : memref<1000xf32>, vector<64xf32>
// V3-LABEL: loop.kernel @relu
// V3:       loop.for "i0" %i0 to 31 {
// V3:         loop.load %x (d0)[s0] -> (((d0 * 32) + s0))(%i0) : memref<1000xf32>, vector<32xf32>
loop.kernel @relu(%x: memref<1000xf32>) -> (%y: memref<1000xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 1000 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<1000xf32>, f32
    %r = arith.maximumf %v, %z : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<1000xf32>
  }
}

// Of a loop alone the outer half is shared among threads.
// V4-LABEL: loop.kernel @relu_any
// V4:       loop.for "i00" %i00 to {{.*}} tiles {
// V4-NEXT:    loop.for "i01" %i01 to min (
// V4-NEXT:      loop.load %x (d0, d1)[s0] -> {{.*}} : memref<?xf32>, vector<64xf32>
// V4:       loop.for "i0t"
// V4:         loop.load %x (d0)[s0] -> ((s0 + ((d0 floordiv 64) * 64)))(%n) valid(0 : %{{.*}}) : memref<?xf32>, vector<64xf32>
// V3-LABEL: loop.kernel @relu_any
// V3:       loop.for "i00" %i00 to {{.*}} tiles {
loop.kernel @relu_any(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    %r = arith.maximumf %v, %z : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// A function of many steps: interleaves as many vectors as leave the smallest remainder.
// V4-LABEL: loop.kernel @exp
// V4:       loop.for "i0" %i0 to 7 {
// V4:         loop.load %x (d0)[s0] -> {{.*}} : memref<1000xf32>, vector<128xf32>
// V3-LABEL: loop.kernel @exp
// V3:       loop.load %x (d0)[s0] -> {{.*}} : memref<1000xf32>, vector<32xf32>
loop.kernel @exp(%x: memref<1000xf32>) -> (%y: memref<1000xf32>) {
  loop.for "i" %i to 1000 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<1000xf32>, f32
    %r = math.exp %v : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<1000xf32>
  }
}

// What is left of an unknown size is taken vector by vector.
// V4-LABEL: loop.kernel @exp_any
// V4:         loop.load %x (d0, d1)[s0] -> {{.*}} : memref<?xf32>, vector<128xf32>
// V4:         loop.load %x (d0, d1)[s0] -> {{.*}} valid(0 : %{{.*}}) : memref<?xf32>, vector<16xf32>
// V3-LABEL: loop.kernel @exp_any
// V3:         loop.load %x (d0, d1)[s0] -> {{.*}} : memref<?xf32>, vector<32xf32>
loop.kernel @exp_any(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    %r = math.exp %v : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}

// A sparse product: a row of features in registers over the entries, rows shared by their entries.
// V4-LABEL: loop.kernel @spmm
// V4-SAME:  attributes {loop.schedule = "balance(i, e, 384, weight=9); tiles(i0); vectorize(j); unroll(e, 4); cascade(e, 512)"} {
// V4:       loop.for "i0" {{.*}} tiles {
// V4:         %[[A:.*]] = loop.partition_point %indptr rows %n part %i0 of
// V4:         %[[B:.*]] = loop.partition_point %indptr rows %n part
// V4-NEXT:    loop.for "i1" %i1 to min (d0, d1) -> (((d0 * -1) + d1))(%[[A]], %[[B]])
// V4:           loop.for "e" {{.*}} reduction unroll 4 cascade 512 carry(%{{.*}} = %{{.*}} : vector<16xf32> add)
// V3-LABEL: loop.kernel @spmm
// V3:           loop.for "e" {{.*}} reduction unroll 2 cascade 256 carry(%{{.*}} = %{{.*}} : vector<16xf32> add)
loop.kernel @spmm(%indptr: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf32>, %x: memref<?x16xf32>) -> (%y: memref<?x16xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x16xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 16 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
        %a = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x16xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x16xf32>
    }
  }
}

// 13264 entries in 2708 rows: five in a row, which are too few for four accumulators.
// V4-LABEL: loop.kernel @short
// V4-SAME:  loop.schedule = "balance(i, e, 235, weight=9); tiles(i0); vectorize(j); unroll(e, 2); cascade(e, 256)"
// V3-LABEL: loop.kernel @short
// V3-SAME:  unroll(e, 2); cascade(e, 256)"
loop.kernel @short(%indptr: memref<2709xi32>, %indices: memref<?xi32> {loop.entries = 13264 : i64}, %values: memref<?xf32>, %x: memref<2708x16xf32>) -> (%y: memref<2708x16xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 2708 {
    loop.for "j" %j to 16 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<2709xi32>, memref<?xi32> {
        %a = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<2708x16xf32>, f32
        %t = math.fma %a, %b, %acc : f32
        loop.yield %t : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<2708x16xf32>
    }
  }
}

// The weights of a softmax have a sum of their own. It is a scalar, which takes none of the registers of a row.
// V4-LABEL: loop.kernel @weighted_by_softmax
// V4-SAME:  loop.schedule = "balance(i, e, {{[0-9]+}}, weight={{[0-9]+}}); tiles(i0); vectorize(j);
// V3-LABEL: loop.kernel @weighted_by_softmax
// V3-SAME:  loop.schedule = "balance(i, e, {{[0-9]+}}, weight={{[0-9]+}}); tiles(i0); vectorize(j);
// V3:           loop.for "e" {{.*}} carry(%{{.*}} = %{{.*}} : f32 add, %{{.*}} = %{{.*}} : vector<64xf32> add)
loop.kernel @weighted_by_softmax(%indptr: memref<?xi32>, %indices: memref<?xi32>, %scores: memref<?xf32>, %x: memref<?x64xf32>) -> (%y: memref<?x64xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x64xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 64 {
      %t, %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%total = %z : f32 add, %acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
        %a = loop.load %scores (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = math.exp %a : f32
        %v = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x64xf32>, f32
        %u = arith.addf %total, %b : f32
        %w = math.fma %b, %v, %acc : f32
        loop.yield %u, %w : f32, f32
      }
      %q = arith.divf %s, %t : f32
      loop.store %q, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x64xf32>
    }
  }
}

// Parts of a wider row are as wide as registers allow: each of them computes the weights again.
// V4-LABEL: loop.kernel @wide_weighted_by_softmax
// V4:           loop.for "e" {{.*}} carry(%{{.*}} = %{{.*}} : f32 add, %{{.*}} = %{{.*}} : vector<128xf32> add)
// V3-LABEL: loop.kernel @wide_weighted_by_softmax
// V3:           loop.for "e" {{.*}} carry(%{{.*}} = %{{.*}} : f32 add, %{{.*}} = %{{.*}} : vector<64xf32> add)
loop.kernel @wide_weighted_by_softmax(%indptr: memref<?xi32>, %indices: memref<?xi32>, %scores: memref<?xf32>, %x: memref<?x256xf32>) -> (%y: memref<?x256xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x256xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 256 {
      %t, %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%total = %z : f32 add, %acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
        %a = loop.load %scores (d0) -> (d0)(%p) : memref<?xf32>, f32
        %b = math.exp %a : f32
        %v = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x256xf32>, f32
        %u = arith.addf %total, %b : f32
        %w = math.fma %b, %v, %acc : f32
        loop.yield %u, %w : f32, f32
      }
      %q = arith.divf %s, %t : f32
      loop.store %q, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x256xf32>
    }
  }
}

// The score of an entry is a sum, but not one of the lanes: it stays a scalar that all of them read.
// V4-LABEL: loop.kernel @weighted_by_scores
// V4-SAME:  tiles(i0); vectorize(j);
// V4-NOT:       loop.local
// V4:           loop.for "e" {{.*}} carry(%{{.*}} = %{{.*}} : vector<64xf32> add)
// V3-LABEL: loop.kernel @weighted_by_scores
// V3-SAME:  tiles(i0); vectorize(j);
loop.kernel @weighted_by_scores(%indptr: memref<?xi32>, %indices: memref<?xi32>, %q: memref<?x8xf32>, %x: memref<?x64xf32>) -> (%y: memref<?x64xf32>) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?x64xf32>
  loop.for "i" %i to %n {
    loop.for "j" %j to 64 {
      %s = loop.for "e" %p, %c of %indptr, %indices row (d0) -> (d0)(%i) reduction carry(%acc = %z : f32 add) : memref<?xi32>, memref<?xi32> {
        %score = loop.for "k" %k to 8 reduction carry(%part = %z : f32 add) {
          %a = loop.load %q (d0, d1) -> (d0, d1)(%i, %k) : memref<?x8xf32>, f32
          %b = loop.load %q (d0, d1) -> (d0, d1)(%c, %k) : memref<?x8xf32>, f32
          %u = math.fma %a, %b, %part : f32
          loop.yield %u : f32
        }
        %v = loop.load %x (d0, d1) -> (d0, d1)(%c, %j) : memref<?x64xf32>, f32
        %w = math.fma %score, %v, %acc : f32
        loop.yield %w : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x64xf32>
    }
  }
}

// Sums of rows: partial accumulators, joined at the end.
// V4-LABEL: loop.kernel @sums
// V4:       loop.for "i" %i to 3 {
// V4:         loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<3x70xf32>, vector<64xf32>
// V4:         loop.fold %{{.*}} axis 0 add : vector<64xf32> -> vector<1xf32>
// V4:         loop.load %x (d0)[s0] -> (d0, (s0 + 64))(%i) : memref<3x70xf32>, vector<4xf32>
// V4:         loop.for {{.*}} to 2 reduction carry(%{{.*}} = %{{.*}} : f32 add)
// V3-LABEL: loop.kernel @sums
// V3:         loop.for {{.*}} to 2 reduction carry(%{{.*}} = %{{.*}} : vector<32xf32> add)
loop.kernel @sums(%x: memref<3x70xf32>) -> (%y: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 3 {
    %s = loop.for "k" %k to 70 reduction carry(%acc = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<3x70xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : f32, memref<3xf32>
  }
}

// A sum over two axes, in no loop: the inner one runs along memory. Short rows are folded once, after
// all of them; where a row is longer than some vectors, each is folded.
// V4-LABEL: loop.kernel @total
// V4-SAME:  attributes {loop.schedule = "vectorize(k)"}
// V4:       loop.for "i" %i to 3 reduction carry(%[[acc:.*]] = %{{.*}} : vector<70xf32> add) {
// V4:         loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<3x70xf32>, vector<70xf32>
// V4:       }
// V4:       loop.fold %{{.*}} axis 0 add : vector<70xf32> -> vector<1xf32>
// V3-LABEL: loop.kernel @total
// V3:         loop.for {{.*}} to 2 reduction carry(%{{.*}} = %{{.*}} : vector<32xf32> add)
loop.kernel @total(%x: memref<3x70xf32>) -> (%y: memref<f32>) {
  %z = arith.constant 0.0 : f32
  %s = loop.for "i" %i to 3 reduction carry(%all = %z : f32 add) {
    %r = loop.for "k" %k to 70 reduction carry(%acc = %all : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<3x70xf32>, f32
      %t = arith.addf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.yield %r : f32
  }
  loop.store %s, %y () -> ()() : f32, memref<f32>
}

// A padded row: its interior runs along memory, the little that is beside it stays.
// V4-LABEL: loop.kernel @pad
// V4-SAME:  attributes {loop.schedule = "split_border(i, 1, 2); split(i, 64, tail=split); vectorize(i1); vectorize(i1t)
// V4:       loop.store %{{.*}}, %y () -> (0)() : f32, memref<203xf32>
// V4:         loop.load %x (d0)[s0] -> (((d0 * 64) + s0))(%i0) : memref<200xf32>, vector<64xf32>
// V4-NOT:   arith.select
// V3-LABEL: loop.kernel @pad
// V3-SAME:  attributes {loop.schedule = "split_border(i, 1, 2);
loop.kernel @pad(%x: memref<200xf32>) -> (%y: memref<203xf32>) {
  %z = arith.constant 0.0 : f32
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.constant 199 : index
  %size = arith.constant 200 : index
  loop.for "i" %i to 203 {
    %j = arith.subi %i, %one : index
    %c = arith.cmpi ult, %j, %size : index
    %k = arith.minsi %j, %last : index
    %l = arith.maxsi %k, %zero : index
    %v = loop.load %x (d0) -> (d0)(%l) : memref<200xf32>, f32
    %r = arith.select %c, %v, %z : f32
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<203xf32>
  }
}

// Elements that lie apart in memory are loaded one by one, and computed with as vectors.
// V4-LABEL: loop.kernel @apart
// V4-SAME:  attributes {loop.schedule = "vectorize(i)"}
// V4-NEXT:  loop.load %x ()[s0] -> ((s0 * 2))() : memref<16xf32>, vector<8xf32>
// V3-LABEL: loop.kernel @apart
// V3:       loop.load %x ()[s0] -> ((s0 * 2))() : memref<16xf32>, vector<8xf32>
loop.kernel @apart(%x: memref<16xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %v = loop.load %x (d0) -> (d0 * 2)(%i) : memref<16xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}

// A nest that nothing fits stays as it is: it stores backwards.
// V4-LABEL: loop.kernel @reversed
// V4-NEXT:  loop.for "i" %i to 8 {
// V4-NEXT:    loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
// V3-LABEL: loop.kernel @reversed
// V3-NEXT:  loop.for "i" %i to 8 {
loop.kernel @reversed(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0 * -1 + 7)(%i) : f32, memref<8xf32>
  }
}

// What reads a row again asks for the next one: 4096 bytes further; not for rows of 64 KB.
// V4-LABEL: loop.kernel @shifted
// V4-SAME:  prefetch(0, j0, 4096)
// V4:         reduction
// V4-NOT:     loop.prefetch
// V4:         loop.for "j0"
// V4-NEXT:        loop.prefetch %x (d0, d1, d2) -> (((d0 * 32) + d1), ((d2 * 64) + 1024))(%i0, %i1, %j0) : memref<512x1024xf32>
// V3-LABEL: loop.kernel @shifted
// V3-SAME:  prefetch(0, j0, 4096)
loop.kernel @shifted(%x: memref<512x1024xf32>) -> (%y: memref<512x1024xf32>) {
  %z = arith.constant 0xFF800000 : f32
  loop.for "i" %i to 512 {
    %m = loop.for "k" %k to 1024 reduction carry(%acc = %z : f32 max) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<512x1024xf32>, f32
      %t = arith.maximumf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.for "j" %j to 1024 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<512x1024xf32>, f32
      %d = arith.subf %v, %m : f32
      loop.store %d, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<512x1024xf32>
    }
  }
}

// V4-LABEL: loop.kernel @long
// V4-NOT:   prefetch
// V3-LABEL: loop.kernel @long
loop.kernel @long(%x: memref<8x16384xf32>) -> (%y: memref<8x16384xf32>) {
  %z = arith.constant 0xFF800000 : f32
  loop.for "i" %i to 8 {
    %m = loop.for "k" %k to 16384 reduction carry(%acc = %z : f32 max) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<8x16384xf32>, f32
      %t = arith.maximumf %acc, %v : f32
      loop.yield %t : f32
    }
    loop.for "j" %j to 16384 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<8x16384xf32>, f32
      %d = arith.subf %v, %m : f32
      loop.store %d, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<8x16384xf32>
    }
  }
}

// Several vectors of a row are carried from row to row.
// V4-LABEL: loop.kernel @running_sums
// V4:         loop.for "k" %k to 99 serial carry(%{{.*}} : vector<128xf32>) {
// V3-LABEL: loop.kernel @running_sums
// V3:         serial carry(%{{.*}} : vector<64xf32>) {
loop.kernel @running_sums(%x: memref<99x512xf32>) -> (%y: memref<99x512xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 512 {
    %s = loop.for "k" %k to 99 serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %i) : memref<99x512xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%k, %i) : f32, memref<99x512xf32>
      loop.yield %u : f32
    }
  }
}

// What long rows carry is in a buffer, where they do not stay in a cache; threads have parts of them.
// V4-LABEL: loop.kernel @running_sums_of_long_rows
// V4-SAME:    loop.schedule = "stage_columns(i, 1); drop_unit_loops();
// V4:         loop.for "k0" %k0 to 2000 serial {
// V4-NEXT:      loop.for "i0" %i0 to 32 {
// V3-LABEL: loop.kernel @running_sums_of_long_rows
// THREADS-LABEL: loop.kernel @running_sums_of_long_rows
// THREADS:      loop.for "k" %k to 2000 serial carry(%{{.*}} : vector<128xf32>) {
loop.kernel @running_sums_of_long_rows(%x: memref<2000x2048xf32>) -> (%y: memref<2000x2048xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 2048 {
    %s = loop.for "k" %k to 2000 serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %i) : memref<2000x2048xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%k, %i) : f32, memref<2000x2048xf32>
      loop.yield %u : f32
    }
  }
}

// Updates of rows at computed places are for several threads; for one they stay in one loop.
// V4-LABEL: loop.kernel @updates
// V4:         loop.for "k" %k to 99999 serial {
// V4-NOT:     loop.owned
// V3-LABEL: loop.kernel @updates
// THREADS-LABEL: loop.kernel @updates
// THREADS-SAME:    loop.schedule = "{{.*}}own(k, 2, {{[0-9]+}}); tiles(k0)
// THREADS:         loop.for "k0" %k0 to 2 tiles {
// THREADS:           loop.store add %{{.*}} : vector<64xf32>, memref<999x64xf32>
loop.kernel @updates(%at: memref<99999xi64>, %v: memref<99999x64xf32>) -> (%y: memref<999x64xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 999 {
    loop.for "j" %j to 64 {
      loop.store %z, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<999x64xf32>
    }
  }
  loop.for "k" %k to 99999 serial {
    %p = loop.load %at (d0) -> (d0)(%k) : memref<99999xi64>, i64
    %q = arith.index_cast %p : i64 to index
    loop.for "l" %l to 64 {
      %w = loop.load %v (d0, d1) -> (d0, d1)(%k, %l) : memref<99999x64xf32>, f32
      loop.store add %w, %y (d0, d1) -> (d0, d1)(%q, %l) : f32, memref<999x64xf32>
    }
  }
}

// Running sums of rows: columns of several rows at a time, copied by squares that are transposed.
// V4-LABEL: loop.kernel @sums_of_rows
// V4-SAME:    loop.schedule = "split(i, 16, tail=peel); stage_columns(i1, 64);
// V4:         loop.store %{{.*}} : vector<16x16xf32>, memref<64x16xf32>
// V4:         loop.for "k1" %k1 to 64 serial carry(%{{.*}} : vector<16xf32>) {
// V3-LABEL: loop.kernel @sums_of_rows
// V3-SAME:    loop.schedule = "split(i, 8, tail=peel); stage_columns(i1, 64);
loop.kernel @sums_of_rows(%x: memref<512x128xf32>) -> (%y: memref<512x128xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "i" %i to 512 {
    %s = loop.for "k" %k to 128 serial carry(%t = %z : f32) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<512x128xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.store %u, %y (d0, d1) -> (d0, d1)(%i, %k) : f32, memref<512x128xf32>
      loop.yield %u : f32
    }
  }
}

// Few columns: rows that follow each other fill a vector, and a reduction over them is folded.
// V4-LABEL: loop.kernel @narrow
// V4-SAME:    loop.schedule = "split(k, 4, tail=peel); split(l, 4, tail=peel); vectorize(k1, l1, j)
// V4:         loop.fold %{{.*}} axis 0 add : vector<4x4xf32> -> vector<1x4xf32>
// V3-LABEL: loop.kernel @narrow
// V3-SAME:    loop.schedule = "split(k, 2, tail=peel); split(l, 2, tail=peel); vectorize(k1, l1, j)
loop.kernel @narrow(%x: memref<37x4xf32>) -> (%y: memref<37x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "j" %j to 4 {
    %s = loop.for "k" %k to 37 reduction carry(%t = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %j) : memref<37x4xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.yield %u : f32
    }
    loop.for "l" %l to 37 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%l, %j) : memref<37x4xf32>, f32
      %w = arith.subf %v, %s : f32
      loop.store %w, %y (d0, d1) -> (d0, d1)(%l, %j) : f32, memref<37x4xf32>
    }
  }
}

// Rows that are apart stay apart.
// V4-LABEL: loop.kernel @columns_of_a_matrix
// V4-SAME:    loop.schedule = "vectorize(j)"
loop.kernel @columns_of_a_matrix(%x: memref<37x9xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "j" %j to 4 {
    %s = loop.for "k" %k to 37 reduction carry(%t = %z : f32 add) {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%k, %j) : memref<37x9xf32>, f32
      %u = arith.addf %t, %v : f32
      loop.yield %u : f32
    }
    loop.store %s, %y (d0) -> (d0)(%j) : f32, memref<4xf32>
  }
}
