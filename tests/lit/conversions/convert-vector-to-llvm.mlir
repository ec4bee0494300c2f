// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-vector-to-llvm | filecheck %s

// Accesses are aligned like one element, not like the vector.
// CHECK-LABEL: func.func @access(
// CHECK-SAME: %x: memref<?xf32>, %i: index) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V3:.*]] = llvm.getelementptr %[[V0]][%[[V2]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %v = llvm.load %[[V3]] {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT: llvm.store %v, %[[V3]] {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT: func.return
func.func @access(%x: memref<?xf32>, %i: index) {
  %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
  vector.store %v, %x[%i] : memref<?xf32>, vector<8xf32>
  func.return
}

// -----

// Lane l of a mask is set where l is below the number: compared in 32 bits after clamping.
// CHECK-LABEL: func.func @masks(
// CHECK-SAME: %x: memref<?xf64>, %n: index, %v: vector<8xf64>) -> vector<8xf64> {
// CHECK-NEXT: %[[V0:.*]] = builtin.unrealized_conversion_cast %n : index to i64
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(8) : i64
// CHECK-NEXT: %[[V3:.*]] = llvm.mlir.poison : vector<8xi32>
// CHECK-NEXT: %[[V4:.*]] = llvm.mlir.constant(dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>) : vector<8xi32>
// CHECK-NEXT: %[[V5:.*]], %[[V6:.*]] = builtin.unrealized_conversion_cast %x : memref<?xf64> to !llvm.ptr, i64
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: %[[V7:.*]] = llvm.intr.smax(%[[V0]], %[[V1]]) : (i64, i64) -> i64
// CHECK-NEXT: %[[V8:.*]] = llvm.intr.smin(%[[V7]], %[[V2]]) : (i64, i64) -> i64
// CHECK-NEXT: %[[V9:.*]] = llvm.trunc %[[V8]] : i64 to i32
// CHECK-NEXT: %[[V10:.*]] = llvm.insertelement %[[V9]], %[[V3]][%[[V1]] : i64] : vector<8xi32>
// CHECK-NEXT: %[[V11:.*]] = llvm.shufflevector %[[V10]], %[[V3]] [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi32>
// CHECK-NEXT: %m = llvm.icmp "sgt" %[[V11]], %[[V4]] : vector<8xi32>
// CHECK-NEXT: %r = llvm.intr.masked.load %[[V5]], %m, %v {alignment = 8 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xf64>) -> vector<8xf64>
// CHECK-NEXT: llvm.intr.masked.store %v, %[[V5]], %m {alignment = 8 : i32} : vector<8xf64>, vector<8xi1> into !llvm.ptr
// CHECK-NEXT: func.return %r : vector<8xf64>
func.func @masks(%x: memref<?xf64>, %n: index, %v: vector<8xf64>) -> vector<8xf64> {
  %c0 = arith.constant 0 : index
  %m = vector.create_mask %n : vector<8xi1>
  %r = vector.maskedload %x[%c0], %m, %v : memref<?xf64>, vector<8xi1>, vector<8xf64> into vector<8xf64>
  vector.maskedstore %x[%c0], %m, %v : memref<?xf64>, vector<8xi1>, vector<8xf64>
  func.return %r : vector<8xf64>
}

// -----

// CHECK-LABEL: func.func @known_mask(
// CHECK-SAME: ) -> vector<4xi1> {
// CHECK-NEXT: %m = llvm.mlir.constant(dense<[true, true, true, false]> : vector<4xi1>) : vector<4xi1>
// CHECK-NEXT: %c3 = arith.constant 3 : index
// CHECK-NEXT: func.return %m : vector<4xi1>
func.func @known_mask() -> vector<4xi1> {
  %c3 = arith.constant 3 : index
  %m = vector.create_mask %c3 : vector<4xi1>
  func.return %m : vector<4xi1>
}

// -----

// A mask with one lane leaves one element to store.
// CHECK-LABEL: func.func @one_lane(
// CHECK-NOT: masked.store
// CHECK: %[[LANE:.*]] = llvm.extractelement %v[%{{.*}} : i64] : vector<4xi16>
// CHECK-NEXT: llvm.store %[[LANE]], %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr
// CHECK-NEXT: %[[OTHER:.*]] = llvm.extractelement %v[%{{.*}} : i64] : vector<4xi16>
// CHECK-NEXT: llvm.store %[[OTHER]], %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr
func.func @one_lane(%x: memref<?xi16>, %v: vector<4xi16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = vector.create_mask %c1 : vector<4xi1>
  %third = arith.constant dense<[false, false, true, false]> : vector<4xi1>
  vector.maskedstore %x[%c0], %first, %v : memref<?xi16>, vector<4xi1>, vector<4xi16>
  vector.maskedstore %x[%c0], %third, %v : memref<?xi16>, vector<4xi1>, vector<4xi16>
  func.return
}

// -----

// Lanes of i1 are bytes in memory.
// CHECK-LABEL: func.func @bools(
// CHECK-SAME: %x: memref<?xi1>, %i: index) {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?xi1> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V3:.*]] = llvm.getelementptr %[[V0]][%[[V2]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT: %[[V4:.*]] = llvm.mlir.constant(dense<0> : vector<8xi8>) : vector<8xi8>
// CHECK-NEXT: %[[V5:.*]] = llvm.load %[[V3]] {alignment = 1 : i64} : !llvm.ptr -> vector<8xi8>
// CHECK-NEXT: %v = llvm.icmp "ne" %[[V5]], %[[V4]] : vector<8xi8>
// CHECK-NEXT: %[[V6:.*]] = llvm.zext %v : vector<8xi1> to vector<8xi8>
// CHECK-NEXT: llvm.store %[[V6]], %[[V3]] {alignment = 1 : i64} : vector<8xi8>, !llvm.ptr
// CHECK-NEXT: func.return
func.func @bools(%x: memref<?xi1>, %i: index) {
  %v = vector.load %x[%i] : memref<?xi1>, vector<8xi1>
  vector.store %v, %x[%i] : memref<?xi1>, vector<8xi1>
  func.return
}

// -----

// CHECK-LABEL: func.func @broadcast(
// CHECK-SAME: %x: f32, %v: vector<1xf32>) -> (vector<4xf32>, vector<4xf32>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.poison : vector<4xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %[[V2:.*]] = llvm.insertelement %x, %[[V0]][%[[V1]] : i64] : vector<4xf32>
// CHECK-NEXT: %[[V3:.*]] = llvm.shufflevector %[[V2]], %[[V0]] [0, 0, 0, 0] : vector<4xf32>
// CHECK-NEXT: %[[V4:.*]] = llvm.shufflevector %v, %v [0, 0, 0, 0] : vector<1xf32>
// CHECK-NEXT: func.return %[[V3]], %[[V4]] : vector<4xf32>, vector<4xf32>
func.func @broadcast(%x: f32, %v: vector<1xf32>) -> (vector<4xf32>, vector<4xf32>) {
  %0 = vector.broadcast %x : f32 to vector<4xf32>
  %1 = vector.broadcast %v : vector<1xf32> to vector<4xf32>
  func.return %0, %1 : vector<4xf32>, vector<4xf32>
}

// -----

// CHECK-LABEL: func.func @lanes(
// CHECK-SAME: %v: vector<4xf32>, %x: f32, %i: index) -> (f32, vector<4xf32>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(2) : i64
// CHECK-NEXT: %[[V1:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V2:.*]] = llvm.mlir.constant(1) : i64
// CHECK-NEXT: %[[V3:.*]] = llvm.extractelement %v[%[[V0]] : i64] : vector<4xf32>
// CHECK-NEXT: %[[V4:.*]] = llvm.extractelement %v[%[[V1]] : i64] : vector<4xf32>
// CHECK-NEXT: %[[V5:.*]] = arith.addf %[[V3]], %[[V4]] : f32
// CHECK-NEXT: %[[V6:.*]] = llvm.insertelement %[[V5]], %v[%[[V2]] : i64] : vector<4xf32>
// CHECK-NEXT: func.return %[[V5]], %[[V6]] : f32, vector<4xf32>
func.func @lanes(%v: vector<4xf32>, %x: f32, %i: index) -> (f32, vector<4xf32>) {
  %0 = vector.extract %v[2] : f32 from vector<4xf32>
  %1 = vector.extract %v[%i] : f32 from vector<4xf32>
  %2 = arith.addf %0, %1 : f32
  %3 = vector.insert %2, %v [1] : f32 into vector<4xf32>
  func.return %2, %3 : f32, vector<4xf32>
}

// -----

// The sum of floats starts from its accumulator; an extremum is joined with it at the end.
// CHECK-LABEL: func.func @reductions(
// CHECK-SAME: %v: vector<8xf32>, %x: f32, %a: vector<4xi32>) -> (f32, f32, f32, i32) {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(1.000000e+00 : f32) : f32
// CHECK-NEXT: %[[V1:.*]] = "llvm.intr.vector.reduce.fadd"(%x, %v) <{fastmathFlags = #llvm.fastmath<reassoc>}> : (f32, vector<8xf32>) -> f32
// CHECK-NEXT: %[[V2:.*]] = "llvm.intr.vector.reduce.fmul"(%[[V0]], %v) <{fastmathFlags = #llvm.fastmath<none>}> : (f32, vector<8xf32>) -> f32
// CHECK-NEXT: %[[V3:.*]] = llvm.intr.vector.reduce.fmaximum(%v) : (vector<8xf32>) -> f32
// CHECK-NEXT: %[[V4:.*]] = llvm.intr.maximum(%[[V3]], %x) : (f32, f32) -> f32
// CHECK-NEXT: %[[V5:.*]] = "llvm.intr.vector.reduce.smin"(%a) : (vector<4xi32>) -> i32
// CHECK-NEXT: func.return %[[V1]], %[[V2]], %[[V4]], %[[V5]] : f32, f32, f32, i32
func.func @reductions(%v: vector<8xf32>, %x: f32, %a: vector<4xi32>) -> (f32, f32, f32, i32) {
  %0 = vector.reduction <add>, %v, %x fastmath<reassoc> : vector<8xf32> into f32
  %1 = vector.reduction <mul>, %v : vector<8xf32> into f32
  %2 = vector.reduction <maximumf>, %v, %x : vector<8xf32> into f32
  %3 = vector.reduction <minsi>, %a : vector<4xi32> into i32
  func.return %0, %1, %2, %3 : f32, f32, f32, i32
}

// -----

// Operands of different lengths are made equally long first.
// CHECK-LABEL: func.func @shuffles(
// CHECK-SAME: %v: vector<4xf32>, %w: vector<2xf32>) -> (vector<2xf32>, vector<3xf32>, vector<4xi32>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.shufflevector %v, %v [0, 5] : vector<4xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.shufflevector %w, %w [0, 1, -1, -1] : vector<2xf32>
// CHECK-NEXT: %[[V2:.*]] = llvm.shufflevector %v, %[[V1]] [0, 4, 5] : vector<4xf32>
// CHECK-NEXT: %[[V3:.*]] = llvm.bitcast %v : vector<4xf32> to vector<4xi32>
// CHECK-NEXT: func.return %[[V0]], %[[V2]], %[[V3]] : vector<2xf32>, vector<3xf32>, vector<4xi32>
func.func @shuffles(%v: vector<4xf32>, %w: vector<2xf32>) -> (vector<2xf32>, vector<3xf32>, vector<4xi32>) {
  %0 = vector.shuffle %v, %v [0, 5] : vector<4xf32>, vector<4xf32>
  %1 = vector.shuffle %v, %w [0, 4, 5] : vector<4xf32>, vector<2xf32>
  %2 = vector.bitcast %v : vector<4xf32> to vector<4xi32>
  func.return %0, %1, %2 : vector<2xf32>, vector<3xf32>, vector<4xi32>
}

// -----

// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %x: memref<?xf32>, %i: index, %at: vector<4xi32>, %m: vector<4xi1>, %v: vector<4xf32>) -> vector<4xf32> {
// CHECK-NEXT: %[[V0:.*]], %[[V1:.*]] = builtin.unrealized_conversion_cast %x : memref<?xf32> to !llvm.ptr, i64
// CHECK-NEXT: %[[V2:.*]] = builtin.unrealized_conversion_cast %i : index to i64
// CHECK-NEXT: %[[V3:.*]] = llvm.getelementptr %[[V0]][%[[V2]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V4:.*]] = llvm.getelementptr %[[V3]][%at] : (!llvm.ptr, vector<4xi32>) -> vector<4x!llvm.ptr>, f32
// CHECK-NEXT: %[[V5:.*]] = llvm.intr.masked.gather %[[V4]], %m, %v {alignment = 4 : i32} : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT: %[[V6:.*]] = llvm.intr.fma(%[[V5]], %v, %v) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT: func.return %[[V6]] : vector<4xf32>
func.func @gather(%x: memref<?xf32>, %i: index, %at: vector<4xi32>, %m: vector<4xi1>, %v: vector<4xf32>) -> vector<4xf32> {
  %0 = vector.gather %x[%i] [%at], %m, %v : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %1 = vector.fma %0, %v, %v : vector<4xf32>
  func.return %1 : vector<4xf32>
}

// -----

// CHECK-LABEL: func.func @scale(
// CHECK-NEXT: %r = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%a, %b, %src, %k, %rounding) : (vector<16xf32>, vector<16xf32>, vector<16xf32>, i16, i32) -> vector<16xf32>
func.func @scale(%src: vector<16xf32>, %a: vector<16xf32>, %b: vector<16xf32>, %k: i16, %rounding: i32) -> vector<16xf32> {
  %r = x86vector.avx512.mask.scalef %src, %a, %b, %k, %rounding : vector<16xf32>
  func.return %r : vector<16xf32>
}

// -----

// Scalars are not touched.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %x: memref<?xf32>, %i: index) -> f32 {
// CHECK-NEXT: %v = memref.load %x[%i] : memref<?xf32>
// CHECK-NEXT: func.return %v : f32
func.func @other(%x: memref<?xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<?xf32>
  func.return %v : f32
}

// -----

func.func @two_dimensions(%x: memref<?x?xf32>, %i: index) -> vector<2x4xf32> {
  // expected-error @+1 {{vector.load: not a machine vector, expected one fixed dimension, got vector<2x4xf32>}}
  %v = vector.load %x[%i, %i] : memref<?x?xf32>, vector<2x4xf32>
  func.return %v : vector<2x4xf32>
}

// -----

func.func @wrong_kind(%v: vector<8xf32>) -> f32 {
  // expected-error @+1 {{vector.reduction: no such reduction of this type, expected maxnumf, minnumf, maximumf, minimumf, got and of f32}}
  %0 = vector.reduction <and>, %v : vector<8xf32> into f32
  func.return %0 : f32
}
