// RUN: stepwell-opt %s --split-input-file -p rt-profile | filecheck %s

// Each call, check and copy has a row; the last one is for the whole function. The table takes
// the next place among the constants.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[TABLE:.*]] = rt.constant %ctx, 1 "profile" : memref<5x2xi64>
// CHECK-NEXT: %[[START:.*]] = rt.clock : i64
// CHECK-NEXT: %n = arith.constant 4 : index
// CHECK-NEXT: %[[T0:.*]] = rt.clock : i64
// CHECK-NEXT: rt.check_index %ctx, %i, %n "ids" : memref<2xi32>
// CHECK-NEXT: rt.record %[[T0]], %[[TABLE]] 0 : memref<5x2xi64>
// CHECK-NEXT: %w = rt.constant %ctx, 0 "w" : memref<4xf32>
// CHECK-NEXT: %[[T1:.*]] = rt.clock : i64
// CHECK-NEXT: rt.call @k(%x, %w) : memref<4xf32>, memref<4xf32>
// CHECK-NEXT: rt.record %[[T1]], %[[TABLE]] 1 : memref<5x2xi64>
// CHECK-NEXT: %[[T2:.*]] = rt.clock : i64
// CHECK-NEXT: rt.call_packed %ctx, 0 "f" ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
// CHECK-NEXT: rt.record %[[T2]], %[[TABLE]] 2 : memref<5x2xi64>
// CHECK-NEXT: %[[T3:.*]] = rt.clock : i64
// CHECK-NEXT: "memref.copy"(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
// CHECK-NEXT: rt.record %[[T3]], %[[TABLE]] 3 : memref<5x2xi64>
// CHECK-NEXT: %ok = arith.constant 0 : i32
// CHECK-NEXT: rt.record %[[START]], %[[TABLE]] 4 : memref<5x2xi64>
// CHECK-NEXT: func.return %ok : i32
func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %i: memref<2xi32>, %y: memref<4xf32>) -> i32 {
  %n = arith.constant 4 : index
  rt.check_index %ctx, %i, %n "ids" : memref<2xi32>
  %w = rt.constant %ctx, 0 "w" : memref<4xf32>
  rt.call @k(%x, %w) : memref<4xf32>, memref<4xf32>
  rt.call_packed %ctx, 0 "f" ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  "memref.copy"(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
func.func private @k(memref<4xf32>, memref<4xf32>)

// -----

// Nothing is timed in a private function, and in a program that calls nothing only the whole is.
// CHECK-LABEL: func.func @main(
// CHECK-NEXT: %[[TABLE:.*]] = rt.constant %ctx, 0 "profile{{.*}}" : memref<1x2xi64>
// CHECK-NEXT: %[[START:.*]] = rt.clock : i64
// CHECK-NEXT: %ok = arith.constant 0 : i32
// CHECK-NEXT: rt.record %[[START]], %[[TABLE]] 0 : memref<1x2xi64>
// CHECK-NEXT: func.return %ok : i32
func.func @main(%ctx: !rt.context) -> i32 {
  %ok = arith.constant 0 : i32
  func.return %ok : i32
}
// CHECK-LABEL: func.func private @other(
// CHECK-NEXT: rt.call @k()
// CHECK-NEXT: func.return
func.func private @other() {
  rt.call @k() 
  func.return
}
func.func private @k()
