// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-arith-to-llvm | filecheck %s

// Integers keep their overflow flags, floats their fast-math flags.
// CHECK-LABEL: func.func @binary(
// CHECK-SAME: %a: i32, %b: i32, %x: f32, %y: f32) -> (i32, f32) {
// CHECK-NEXT: %[[V0:.*]] = llvm.add %a, %b overflow<nsw> : i32
// CHECK-NEXT: %[[V1:.*]] = llvm.mul %[[V0]], %b : i32
// CHECK-NEXT: %[[V2:.*]] = llvm.sdiv %[[V1]], %a : i32
// CHECK-NEXT: %[[V3:.*]] = llvm.urem %[[V2]], %a : i32
// CHECK-NEXT: %[[V4:.*]] = llvm.ashr %[[V3]], %b : i32
// CHECK-NEXT: %[[V5:.*]] = llvm.xor %[[V4]], %a : i32
// CHECK-NEXT: %[[V6:.*]] = llvm.fadd %x, %y {fastmathFlags = #llvm.fastmath<reassoc,contract>} : f32
// CHECK-NEXT: %[[V7:.*]] = llvm.fdiv %[[V6]], %y : f32
// CHECK-NEXT: %[[V8:.*]] = llvm.fneg %[[V7]] : f32
// CHECK-NEXT: %[[V9:.*]] = llvm.frem %[[V8]], %y : f32
// CHECK-NEXT: func.return %[[V5]], %[[V9]] : i32, f32
func.func @binary(%a: i32, %b: i32, %x: f32, %y: f32) -> (i32, f32) {
  %0 = arith.addi %a, %b overflow<nsw> : i32
  %1 = arith.muli %0, %b : i32
  %2 = arith.divsi %1, %a : i32
  %3 = arith.remui %2, %a : i32
  %4 = arith.shrsi %3, %b : i32
  %5 = arith.xori %4, %a : i32
  %6 = arith.addf %x, %y fastmath<reassoc,contract> : f32
  %7 = arith.divf %6, %y : f32
  %8 = arith.negf %7 : f32
  %9 = arith.remf %8, %y : f32
  func.return %5, %9 : i32, f32
}

// -----

// The four extrema of floats differ in what they make of NaN; those of integers in the sign.
// CHECK-LABEL: func.func @extrema(
// CHECK-SAME: %x: vector<8xf32>, %y: vector<8xf32>, %a: i64, %b: i64) -> (vector<8xf32>, i64) {
// CHECK-NEXT: %[[V0:.*]] = llvm.intr.maximum(%x, %y) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.intr.maxnum(%[[V0]], %y) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V2:.*]] = llvm.intr.minimum(%[[V1]], %y) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V3:.*]] = llvm.intr.minnum(%[[V2]], %y) : (vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V4:.*]] = llvm.intr.smax(%a, %b) : (i64, i64) -> i64
// CHECK-NEXT: %[[V5:.*]] = llvm.intr.umin(%[[V4]], %b) : (i64, i64) -> i64
// CHECK-NEXT: func.return %[[V3]], %[[V5]] : vector<8xf32>, i64
func.func @extrema(%x: vector<8xf32>, %y: vector<8xf32>, %a: i64, %b: i64) -> (vector<8xf32>, i64) {
  %0 = arith.maximumf %x, %y : vector<8xf32>
  %1 = arith.maxnumf %0, %y : vector<8xf32>
  %2 = arith.minimumf %1, %y : vector<8xf32>
  %3 = arith.minnumf %2, %y : vector<8xf32>
  %4 = arith.maxsi %a, %b : i64
  %5 = arith.minui %4, %b : i64
  func.return %3, %5 : vector<8xf32>, i64
}

// -----

// A comparison of vectors gives a vector, and selects lane by lane.
// CHECK-LABEL: func.func @compare(
// CHECK-SAME: %x: vector<8xf32>, %y: vector<8xf32>, %a: vector<4xi32>, %c: i1) -> (vector<8xf32>, vector<4xi1>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.fcmp "olt" %x, %y : vector<8xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.select %[[V0]], %x, %y : vector<8xi1>, vector<8xf32>
// CHECK-NEXT: %[[V2:.*]] = llvm.select %c, %[[V1]], %x : i1, vector<8xf32>
// CHECK-NEXT: %[[V3:.*]] = llvm.icmp "ugt" %a, %a : vector<4xi32>
// CHECK-NEXT: func.return %[[V2]], %[[V3]] : vector<8xf32>, vector<4xi1>
func.func @compare(%x: vector<8xf32>, %y: vector<8xf32>, %a: vector<4xi32>, %c: i1) -> (vector<8xf32>, vector<4xi1>) {
  %0 = arith.cmpf olt, %x, %y : vector<8xf32>
  %1 = arith.select %0, %x, %y : vector<8xi1>, vector<8xf32>
  %2 = arith.select %c, %1, %x : vector<8xf32>
  %3 = arith.cmpi ugt, %a, %a : vector<4xi32>
  func.return %2, %3 : vector<8xf32>, vector<4xi1>
}

// -----

// An index is an i64: a cast to i64 vanishes, others extend or truncate.
// CHECK-LABEL: func.func @index(
// CHECK-SAME: %i: index, %a: i32, %b: i64) -> (i64, i32, index, index) {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V1:.*]] = llvm.trunc %[[V0]] : i64 to i32
// CHECK-NEXT: %[[V2:.*]] = llvm.sext %a : i32 to i64
// CHECK-NEXT: %[[V3:.*]] = builtin.unrealized_conversion_cast %[[V2]] : i64 to index
// CHECK-NEXT: %[[V4:.*]] = llvm.zext %a : i32 to i64
// CHECK-NEXT: %[[V5:.*]] = builtin.unrealized_conversion_cast %[[V4]] : i64 to index
// CHECK-NEXT: func.return %[[V0]], %[[V1]], %[[V3]], %[[V5]] : i64, i32, index, index
func.func @index(%i: index, %a: i32, %b: i64) -> (i64, i32, index, index) {
  %0 = arith.index_cast %i : index to i64
  %1 = arith.index_cast %i : index to i32
  %2 = arith.index_cast %a : i32 to index
  %3 = arith.index_castui %a : i32 to index
  func.return %0, %1, %2, %3 : i64, i32, index, index
}

// -----

// CHECK-LABEL: func.func @casts(
// CHECK-SAME: %h: vector<8xf16>, %a: vector<4xi8>, %d: f64, %x: f32) -> (vector<8xf32>, vector<4xi32>, f32, i32) {
// CHECK-NEXT: %[[V0:.*]] = llvm.fpext %h : vector<8xf16> to vector<8xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.sext %a : vector<4xi8> to vector<4xi32>
// CHECK-NEXT: %[[V2:.*]] = llvm.sitofp %[[V1]] : vector<4xi32> to vector<4xf32>
// CHECK-NEXT: %[[V3:.*]] = llvm.fptosi %[[V2]] : vector<4xf32> to vector<4xi32>
// CHECK-NEXT: %[[V4:.*]] = llvm.fptrunc %d : f64 to f32
// CHECK-NEXT: %[[V5:.*]] = llvm.bitcast %x : f32 to i32
// CHECK-NEXT: func.return %[[V0]], %[[V3]], %[[V4]], %[[V5]] : vector<8xf32>, vector<4xi32>, f32, i32
func.func @casts(%h: vector<8xf16>, %a: vector<4xi8>, %d: f64, %x: f32) -> (vector<8xf32>, vector<4xi32>, f32, i32) {
  %0 = arith.extf %h : vector<8xf16> to vector<8xf32>
  %1 = arith.extsi %a : vector<4xi8> to vector<4xi32>
  %2 = arith.sitofp %1 : vector<4xi32> to vector<4xf32>
  %3 = arith.fptosi %2 : vector<4xf32> to vector<4xi32>
  %4 = arith.truncf %d : f64 to f32
  %5 = arith.bitcast %x : f32 to i32
  func.return %0, %3, %4, %5 : vector<8xf32>, vector<4xi32>, f32, i32
}

// -----

// Constants go to the entry of the function, each once.
// CHECK-LABEL: func.func @constants(
// CHECK-SAME: %c: i1) -> (f32, f32, vector<4xi32>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(1.500000e+00 : f32) : f32
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(dense<[1, 2, 3, 4]> : vector<4xi32>) : vector<4xi32>
// CHECK-NEXT: cf.br ^bb1
// CHECK-NEXT: ^bb1:
// CHECK-NEXT: func.return %[[V0]], %[[V0]], %[[V1]] : f32, f32, vector<4xi32>
func.func @constants(%c: i1) -> (f32, f32, vector<4xi32>) {
  cf.br ^bb1
^bb1:
  %0 = arith.constant 1.5 : f32
  %1 = arith.constant 1.5 : f32
  %2 = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
  func.return %0, %1, %2 : f32, f32, vector<4xi32>
}

// -----

// The quotient of LLVM truncates; flooring takes one away where signs differ and a rest is left.
// CHECK-LABEL: func.func @floor(
// CHECK-SAME: %a: i32, %b: i32) -> i32 {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT: %[[V2:.*]] = llvm.sdiv %a, %b : i32
// CHECK-NEXT: %[[V3:.*]] = llvm.srem %a, %b : i32
// CHECK-NEXT: %[[V4:.*]] = llvm.icmp "ne" %[[V3]], %[[V0]] : i32
// CHECK-NEXT: %[[V5:.*]] = llvm.xor %[[V3]], %b : i32
// CHECK-NEXT: %[[V6:.*]] = llvm.icmp "slt" %[[V5]], %[[V0]] : i32
// CHECK-NEXT: %[[V7:.*]] = llvm.and %[[V4]], %[[V6]] : i1
// CHECK-NEXT: %[[V8:.*]] = llvm.sub %[[V2]], %[[V1]] : i32
// CHECK-NEXT: %[[V9:.*]] = llvm.select %[[V7]], %[[V8]], %[[V2]] : i1, i32
// CHECK-NEXT: func.return %[[V9]] : i32
func.func @floor(%a: i32, %b: i32) -> i32 {
  %0 = arith.floordivsi %a, %b : i32
  func.return %0 : i32
}

// -----

// What is not arithmetic stays as it is.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %m: memref<?xf32>, %i: index) -> f32 {
// CHECK-NEXT: %[[V0:.*]] = memref.load %m[%i] : memref<?xf32>
// CHECK-NEXT: func.return %[[V0]] : f32
func.func @other(%m: memref<?xf32>, %i: index) -> f32 {
  %0 = memref.load %m[%i] : memref<?xf32>
  func.return %0 : f32
}

// -----

func.func @two_dimensions(%v: vector<2x4xf32>) -> vector<2x4xf32> {
  // expected-error @+1 {{arith.addf: not a machine vector, expected one fixed dimension, got vector<2x4xf32>}}
  %0 = arith.addf %v, %v : vector<2x4xf32>
  func.return %0 : vector<2x4xf32>
}

// -----

func.func @unknown(%a: i32) -> i32 {
  // expected-error @+1 {{arith.mulsi_extended: cannot be converted to the llvm dialect}}
  %0, %1 = arith.mulsi_extended %a, %a : i32
  func.return %0 : i32
}
