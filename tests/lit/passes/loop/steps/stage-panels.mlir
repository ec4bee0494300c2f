// RUN: stepwell-opt %s -p "loop-stage-panels{kernel=product loop=k0}" | filecheck %s
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=product loop=k1}" 2>&1 | filecheck %s --check-prefix=INNER
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=rows loop=k}" 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=threads loop=k}" 2>&1 | filecheck %s --check-prefix=THREADS
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=ragged loop=k}" 2>&1 | filecheck %s --check-prefix=RAGGED
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=after loop=k}" 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: stepwell-opt %s -p "loop-stage-panels{kernel=vectors loop=k0 part=4}" | filecheck %s --check-prefix=PART
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=product loop=k0 part=4}" 2>&1 | filecheck %s --check-prefix=PARTS
// RUN: stepwell-opt %s -p "loop-stage-panels{kernel=even loop=k0 part=4 ahead=1}" | filecheck %s --check-prefix=EVEN
// RUN: stepwell-opt %s -p "loop-stage-panels{kernel=odd loop=k0 ahead=1}" | filecheck %s --check-prefix=ODD
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=vectors loop=k0 ahead=1}" 2>&1 | filecheck %s --check-prefix=ELEMENTS
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=ragged_panels loop=k0 ahead=1}" 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not stepwell-opt %s -p "loop-stage-panels{kernel=even loop=k0 ahead=2}" 2>&1 | filecheck %s --check-prefix=FAR
// RUN: stepwell-opt %s -p "loop-stage-panels{kernel=terms loop=k0}" | filecheck %s --check-prefix=TERMS

// INNER: loop-stage-panels: loop "k1" of @product: is not in loops that are perfectly nested in "i"
// NOTHING: loop-stage-panels: loop "k" of @rows: reads nothing that several threads read
// THREADS: loop-stage-panels: loop "k" of @threads: is not in the threads of a block
// RAGGED: loop-stage-panels: loop "k" of @ragged: the size of "t" around it is not known
// AFTER: loop-stage-panels: loop "k" of @after: is after loop.for
// ELEMENTS: loop-stage-panels: loop "k0" of @vectors: what it reads is not copied by vectors of 16 bytes
// COUNT: loop-stage-panels: loop "k0" of @ragged_panels: has no known number of panels, expected at least 2
// FAR: loop-stage-panels: loop "k0" of @even: wrong number of panels ahead, expected at most 1, got 2
// PARTS: loop-stage-panels: loop "k0" of @product: has no such parts, expected a divisor of the size of the only reduction in it, got 4

// Threads copy panels of both operands, with rows of an odd length, and keep 2 accumulators each.
// What is before the sum is computed where it is needed, and what follows it after the panels.
// CHECK-LABEL: loop.kernel @product(
// CHECK:       loop.for "b" %b to 3 blocks {
// CHECK-NEXT:    %[[SUM:.*]] = loop.local : memref<4x8x2xf32, #loop<space threads>>
// CHECK-NEXT:    loop.for "ib" %ib to 4 threads {
// CHECK-NEXT:      loop.for "jb" %jb to 8 threads {
// CHECK-NEXT:        loop.for "rb" %rb to 2 unroll {
// CHECK-NEXT:          %[[FIRST:.*]] = loop.load %v (d0) -> (d0)(%jb)
// CHECK-NEXT:          loop.store %[[FIRST]], %[[SUM]] (d0, d1, d2) -> (d0, d1, d2)(%ib, %jb, %rb)
// CHECK:         loop.for "k0" %k0 to 5 serial {
// CHECK-NEXT:      %[[X:.*]] = loop.local : memref<8x7xf32, #loop<space shared>>
// CHECK-NEXT:      loop.for "k0p" %{{.*}} to 8 threads {
// CHECK-NEXT:        loop.for "k0p1" %{{.*}} to 6 threads {
// CHECK-NEXT:          %[[E:.*]] = loop.load %x (d0, d1, d2, d3) -> (((d0 * 8) + d1), ((d2 * 6) + d3))(%b, %{{.*}}, %k0, %{{.*}})
// CHECK-NEXT:          loop.store %[[E]], %[[X]]
// CHECK:           %[[W:.*]] = loop.local : memref<8x7xf32, #loop<space shared>>
// CHECK:           loop.for "i" %i to 4 threads {
// CHECK-NEXT:        loop.for "j" %j to 8 threads {
// CHECK-NEXT:          loop.for "r" %r to 2 unroll {
// CHECK-NEXT:            %[[A:.*]] = loop.load %[[SUM]]
// CHECK-NEXT:            %[[S:.*]] = loop.for "k1" %k1 to 6 reduction carry({{.*}} = %[[A]] : f32 add) {
// CHECK-NEXT:              loop.load %[[X]] (d0, d1, d2) -> (((d0 * 2) + d1), d2)(%i, %r, %k1)
// CHECK-NEXT:              loop.load %[[W]] (d0, d1) -> (d0, d1)(%j, %k1)
// CHECK:                 loop.store %[[S]], %[[SUM]]
// CHECK:         loop.for "ie" %ie to 4 threads {
// CHECK:               %[[AGAIN:.*]] = loop.load %v (d0) -> (d0)(%je)
// CHECK-NEXT:          %[[ALL:.*]] = loop.load %[[SUM]]
// CHECK-NEXT:          %[[R:.*]] = arith.mulf %[[ALL]], %[[AGAIN]]
// CHECK-NEXT:          loop.store %[[R]], %y
loop.kernel @product(%x: memref<24x30xf32>, %w: memref<8x30xf32>, %v: memref<8xf32>)
    -> (%y: memref<24x8xf32>) {
  loop.for "b" %b to 3 blocks {
    loop.for "i" %i to 4 threads {
      loop.for "j" %j to 8 threads {
        loop.for "r" %r to 2 unroll {
          %first = loop.load %v (d0) -> (d0)(%j) : memref<8xf32>, f32
          %s = loop.for "k0" %k0 to 5 reduction carry(%a = %first : f32 add) {
            %t = loop.for "k1" %k1 to 6 reduction carry(%c = %a : f32 add) {
              %p = loop.load %x (d0, d1, d2, d3, d4) -> (d0 * 8 + d1 * 2 + d2, d3 * 6 + d4)(%b, %i, %r, %k0, %k1) : memref<24x30xf32>, f32
              %q = loop.load %w (d0, d1, d2) -> (d0, d1 * 6 + d2)(%j, %k0, %k1) : memref<8x30xf32>, f32
              %u = math.fma %p, %q, %c : f32
              loop.yield %u : f32
            }
            loop.yield %t : f32
          }
          %m = arith.mulf %s, %first : f32
          loop.store %m, %y (d0, d1, d2, d3) -> (d0 * 8 + d1 * 2 + d2, d3)(%b, %i, %r, %j) : f32, memref<24x8xf32>
        }
      }
    }
  }
}

loop.kernel @rows(%x: memref<3x4x5xf32>) -> (%y: memref<3x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 3 blocks {
    loop.for "t" %t to 4 threads {
      %s = loop.for "k" %k to 5 reduction carry(%a = %z : f32 add) {
        %p = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %t, %k) : memref<3x4x5xf32>, f32
        %u = arith.addf %p, %a : f32
        loop.yield %u : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : f32, memref<3x4xf32>
    }
  }
}

loop.kernel @threads(%x: memref<4x5xf32>) -> (%y: memref<4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "t" %t to 4 threads {
    %s = loop.for "k" %k to 5 reduction carry(%a = %z : f32 add) {
      %p = loop.load %x (d0, d1) -> (d0, d1)(%t, %k) : memref<4x5xf32>, f32
      %u = arith.addf %p, %a : f32
      loop.yield %u : f32
    }
    loop.store %s, %y (d0) -> (d0)(%t) : f32, memref<4xf32>
  }
}

loop.kernel @ragged(%x: memref<3x?x5xf32>, %n: index) -> (%y: memref<3x?xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 3 blocks {
    loop.for "t" %t to %n threads {
      %s = loop.for "k" %k to 5 reduction carry(%a = %z : f32 add) {
        %p = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %t, %k) : memref<3x?x5xf32>, f32
        %u = arith.addf %p, %a : f32
        loop.yield %u : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : f32, memref<3x?xf32>
    }
  }
}

loop.kernel @after(%x: memref<3x5xf32>) -> (%y: memref<3x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 3 blocks {
    loop.for "t" %t to 4 threads {
      %m = loop.for "l" %l to 5 reduction carry(%a = %z : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%b, %l) : memref<3x5xf32>, f32
        %u = arith.addf %p, %a : f32
        loop.yield %u : f32
      }
      %s = loop.for "k" %k to 5 reduction carry(%a = %m : f32 add) {
        %p = loop.load %x (d0, d1) -> (d0, d1)(%b, %k) : memref<3x5xf32>, f32
        %u = arith.addf %p, %a : f32
        loop.yield %u : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : f32, memref<3x4xf32>
    }
  }
}

// Rows of 8 elements are two vectors of 16 bytes, which a thread copies, in rows of three; of a panel
// with odd rows or places, it copies elements. A part of the panel is added at a time.
// PART-LABEL: loop.kernel @vectors(
// PART:         loop.for "k0" %k0 to 4 serial {
// PART-NEXT:      %[[X:.*]] = loop.local : memref<4x12xf32, #loop<space shared>>
// PART-NEXT:      loop.for "k0p" %{{.*}} to 4 threads {
// PART-NEXT:        loop.for "k0p1" %{{.*}} to 2 threads {
// PART-NEXT:          loop.for "k0pv" %{{.*}} to 4 unroll {
// PART-NEXT:            %[[E:.*]] = loop.load %x (d0, d1, d2, d3, d4) -> (((d0 * 4) + d1), ((d2 * 8) + ((d3 * 4) + d4)))(%b,
// PART-NEXT:            loop.store %[[E]], %[[X]] (d0, d1, d2) -> (d0, ((d1 * 4) + d2))
// PART:           %[[W:.*]] = loop.local : memref<4x12xf32, #loop<space shared>>
// PART-NEXT:      loop.for "k0pp" %{{.*}} to 4 threads {
// PART-NEXT:        loop.for "k0pp1" %{{.*}} to 8 threads {
// PART-NEXT:          loop.load %w
// PART:           loop.for "k1p" %[[P:.*]] to 2 serial {
// PART-NEXT:        loop.for "i" %i to 4 threads {
// PART-NEXT:          loop.for "j" %j to 4 threads {
// PART-NEXT:            %[[A:.*]] = loop.load
// PART-NEXT:            loop.for "k1" %k1 to 4 reduction carry({{.*}} = %[[A]] : f32 add) {
// PART-NEXT:              loop.load %[[X]] (d0, d1, d2) -> (d0, ((d1 * 4) + d2))(%i, %[[P]], %k1)
// PART-NEXT:              loop.load %[[W]] (d0, d1, d2) -> (d0, ((d1 * 4) + d2))(%j, %[[P]], %k1)
loop.kernel @vectors(%x: memref<8x32xf32>, %w: memref<4x33xf32>) -> (%y: memref<8x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 2 blocks {
    loop.for "i" %i to 4 threads {
      loop.for "j" %j to 4 threads {
        %s = loop.for "k0" %k0 to 4 reduction carry(%a = %z : f32 add) {
          %t = loop.for "k1" %k1 to 8 reduction carry(%c = %a : f32 add) {
            %p = loop.load %x (d0, d1, d2, d3) -> (d0 * 4 + d1, d2 * 8 + d3)(%b, %i, %k0, %k1) : memref<8x32xf32>, f32
            %q = loop.load %w (d0, d1, d2) -> (d0, d1 * 8 + d2 + 1)(%j, %k0, %k1) : memref<4x33xf32>, f32
            %u = math.fma %p, %q, %c : f32
            loop.yield %u : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0 * 4 + d1, d2)(%b, %i, %j) : f32, memref<8x4xf32>
      }
    }
  }
}

// Panels are copied to one of two buffers while those of the other one are added. Of four, the loop
// adds two, and two follow it.
// EVEN-LABEL: loop.kernel @even(
// EVEN:         %[[P:.*]] = loop.local : memref<4x12xf32, #loop<space shared>>
// EVEN-NEXT:    loop.for "k0p" %{{.*}} to 4 threads {
// EVEN-NEXT:      loop.for "k0p1" %{{.*}} to 2 threads {
// EVEN-NEXT:        loop.for "k0pv" %{{.*}} to 4 async {
// EVEN-NEXT:          loop.load %x (d0, d1, d2, d3) -> (((d0 * 4) + d1), ((d2 * 4) + d3))(%b,
// EVEN-NEXT:          loop.store %{{.*}}, %[[P]]
// EVEN:         %[[Q:.*]] = loop.local : memref<4x12xf32, #loop<space shared>>
// EVEN:         loop.for "k0" %k0 to 1 serial {
// EVEN-NEXT:      loop.for "k0pn" %{{.*}} to 4 threads {
// EVEN:               loop.load %x (d0, d1, d2, d3, d4) -> (((d0 * 4) + d1), (((d2 * 16) + 8) + ((d3 * 4) + d4)))(%b,
// EVEN:           loop.for "k1p" %{{.*}} to 2 serial {
// EVEN:             loop.load %[[P]]
// EVEN:           loop.for "k0pq" %{{.*}} to 4 threads {
// EVEN:           loop.for "k1pq" %{{.*}} to 2 serial {
// EVEN:         loop.for "k0pl" %{{.*}} to 4 threads {
// EVEN:         loop.for "k1pr" %{{.*}} to 2 serial {
// EVEN:           loop.load %[[P]]
// EVEN:         loop.for "k1ps" %{{.*}} to 2 serial {
// EVEN:         loop.for "ie" %ie to 4 threads {
loop.kernel @even(%x: memref<8x32xf32>, %w: memref<4x32xf32>) -> (%y: memref<8x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 2 blocks {
    loop.for "i" %i to 4 threads {
      loop.for "j" %j to 4 threads {
        %s = loop.for "k0" %k0 to 4 reduction carry(%a = %z : f32 add) {
          %t = loop.for "k1" %k1 to 8 reduction carry(%c = %a : f32 add) {
            %p = loop.load %x (d0, d1, d2, d3) -> (d0 * 4 + d1, d2 * 8 + d3)(%b, %i, %k0, %k1) : memref<8x32xf32>, f32
            %q = loop.load %w (d0, d1, d2) -> (d0, d1 * 8 + d2)(%j, %k0, %k1) : memref<4x32xf32>, f32
            %u = math.fma %p, %q, %c : f32
            loop.yield %u : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0 * 4 + d1, d2)(%b, %i, %j) : f32, memref<8x4xf32>
      }
    }
  }
}

// Of three, one follows the loop.
// ODD-LABEL: loop.kernel @odd(
// ODD:         loop.for "k0" %k0 to 1 serial {
// ODD:           loop.for "iq" %iq to 4 threads {
// ODD:         loop.for "ir" %ir to 4 threads {
// ODD-NOT:     loop.for "is"
// ODD:         loop.for "ie" %ie to 4 threads {
loop.kernel @odd(%x: memref<8x24xf32>, %w: memref<4x24xf32>) -> (%y: memref<8x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 2 blocks {
    loop.for "i" %i to 4 threads {
      loop.for "j" %j to 4 threads {
        %s = loop.for "k0" %k0 to 3 reduction carry(%a = %z : f32 add) {
          %t = loop.for "k1" %k1 to 8 reduction carry(%c = %a : f32 add) {
            %p = loop.load %x (d0, d1, d2, d3) -> (d0 * 4 + d1, d2 * 8 + d3)(%b, %i, %k0, %k1) : memref<8x24xf32>, f32
            %q = loop.load %w (d0, d1, d2) -> (d0, d1 * 8 + d2)(%j, %k0, %k1) : memref<4x24xf32>, f32
            %u = math.fma %p, %q, %c : f32
            loop.yield %u : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0 * 4 + d1, d2)(%b, %i, %j) : f32, memref<8x4xf32>
      }
    }
  }
}

loop.kernel @ragged_panels(%x: memref<8x32xf32>, %w: memref<4x32xf32>, %n: index) -> (%y: memref<8x4xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 2 blocks {
    loop.for "i" %i to 4 threads {
      loop.for "j" %j to 4 threads {
        %s = loop.for "k0" %k0 to min (d0) -> (d0, 4)(%n) reduction carry(%a = %z : f32 add) {
          %t = loop.for "k1" %k1 to 8 reduction carry(%c = %a : f32 add) {
            %p = loop.load %x (d0, d1, d2, d3) -> (d0 * 4 + d1, d2 * 8 + d3)(%b, %i, %k0, %k1) : memref<8x32xf32>, f32
            %q = loop.load %w (d0, d1, d2) -> (d0, d1 * 8 + d2)(%j, %k0, %k1) : memref<4x32xf32>, f32
            %u = math.fma %p, %q, %c : f32
            loop.yield %u : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %y (d0, d1, d2) -> (d0 * 4 + d1, d2)(%b, %i, %j) : f32, memref<8x4xf32>
      }
    }
  }
}

// What all threads compute alike is computed once, with the constants that it needs.
// TERMS-LABEL: loop.kernel @terms(
// TERMS:         loop.for "k0" %k0 to 2 serial {
// TERMS-NEXT:      %[[Q:.*]] = loop.local : memref<4xf32, #loop<space shared>>
// TERMS-NEXT:      loop.for "k0p" %[[K:.*]] to 4 threads {
// TERMS-NEXT:        %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// TERMS-NEXT:        %[[V:.*]] = loop.load %v
// TERMS-NEXT:        %[[M:.*]] = arith.mulf %[[V]], %[[TWO]] : f32
// TERMS-NEXT:        loop.store %[[M]], %[[Q]] (d0) -> (d0)(%[[K]])
// TERMS:           loop.for "t" %t to 8 threads {
// TERMS:             loop.for "k1" %k1 to 4 reduction
// TERMS-NEXT:          loop.load %[[Q]] (d0) -> (d0)(%k1)
loop.kernel @terms(%x: memref<8x8xf32>, %v: memref<8xf32>) -> (%y: memref<3x8xf32>) {
  %z = arith.constant 0.0 : f32
  loop.for "b" %b to 3 blocks {
    loop.for "t" %t to 8 threads {
      %s = loop.for "k0" %k0 to 2 reduction carry(%a = %z : f32 add) {
        %p = loop.for "k1" %k1 to 4 reduction carry(%c = %a : f32 add) {
          %two = arith.constant 2.0 : f32
          %w = loop.load %v (d0, d1) -> (d0 * 4 + d1)(%k0, %k1) : memref<8xf32>, f32
          %m = arith.mulf %w, %two : f32
          %e = loop.load %x (d0, d1, d2) -> (d0 * 4 + d1, d2)(%k0, %k1, %t) : memref<8x8xf32>, f32
          %u = math.fma %m, %e, %c : f32
          loop.yield %u : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %y (d0, d1) -> (d0, d1)(%b, %t) : f32, memref<3x8xf32>
    }
  }
}
