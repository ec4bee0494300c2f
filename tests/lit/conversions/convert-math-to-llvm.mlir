// RUN: stepwell-opt %s --split-input-file --verify-diagnostics -p convert-math-to-llvm | filecheck %s

// CHECK-LABEL: func.func @intrinsics(
// CHECK-SAME: %x: f32, %v: vector<8xf32>) -> (f32, vector<8xf32>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.intr.fabs(%x) : (f32) -> f32
// CHECK-NEXT: %[[V1:.*]] = llvm.intr.floor(%[[V0]]) : (f32) -> f32
// CHECK-NEXT: %[[V2:.*]] = llvm.intr.exp(%[[V1]]) {fastmathFlags = #llvm.fastmath<afn>} : (f32) -> f32
// CHECK-NEXT: %[[V3:.*]] = llvm.intr.sqrt(%v) : (vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V4:.*]] = llvm.intr.fma(%[[V3]], %v, %v) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: %[[V5:.*]] = llvm.intr.tanh(%[[V4]]) : (vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT: func.return %[[V2]], %[[V5]] : f32, vector<8xf32>
func.func @intrinsics(%x: f32, %v: vector<8xf32>) -> (f32, vector<8xf32>) {
  %0 = math.absf %x : f32
  %1 = math.floor %0 : f32
  %2 = math.exp %1 fastmath<afn> : f32
  %3 = math.sqrt %v : vector<8xf32>
  %4 = math.fma %3, %v, %v : vector<8xf32>
  %5 = math.tanh %4 : vector<8xf32>
  func.return %2, %5 : f32, vector<8xf32>
}

// -----

// CHECK-LABEL: func.func @rsqrt(
// CHECK-SAME: %v: vector<4xf32>) -> vector<4xf32> {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(dense<1.000000e+00> : vector<4xf32>) : vector<4xf32>
// CHECK-NEXT: %[[V1:.*]] = llvm.intr.sqrt(%v) : (vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT: %[[V2:.*]] = llvm.fdiv %[[V0]], %[[V1]] : vector<4xf32>
// CHECK-NEXT: func.return %[[V2]] : vector<4xf32>
func.func @rsqrt(%v: vector<4xf32>) -> vector<4xf32> {
  %0 = math.rsqrt %v : vector<4xf32>
  func.return %0 : vector<4xf32>
}

// -----

// What LLVM has no intrinsic for is called in libm, lane by lane, and declared once.
// CHECK-LABEL: llvm.func @erff(
// CHECK-SAME: f32) -> f32
// CHECK-LABEL: llvm.func @erf(
// CHECK-SAME: f64) -> f64
// CHECK-LABEL: func.func @libm(
// CHECK-SAME: %x: f32, %v: vector<2xf64>) -> (f32, vector<2xf64>) {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT: %[[V1:.*]] = llvm.mlir.constant(1) : i64
// CHECK-NEXT: %[[V2:.*]] = llvm.call @erff(%x) : (f32) -> f32
// CHECK-NEXT: %[[V3:.*]] = llvm.call @erff(%[[V2]]) : (f32) -> f32
// CHECK-NEXT: %[[V4:.*]] = llvm.mlir.poison : vector<2xf64>
// CHECK-NEXT: %[[V5:.*]] = llvm.extractelement %v[%[[V0]] : i64] : vector<2xf64>
// CHECK-NEXT: %[[V6:.*]] = llvm.call @erf(%[[V5]]) : (f64) -> f64
// CHECK-NEXT: %[[V7:.*]] = llvm.insertelement %[[V6]], %[[V4]][%[[V0]] : i64] : vector<2xf64>
// CHECK-NEXT: %[[V8:.*]] = llvm.extractelement %v[%[[V1]] : i64] : vector<2xf64>
// CHECK-NEXT: %[[V9:.*]] = llvm.call @erf(%[[V8]]) : (f64) -> f64
// CHECK-NEXT: %[[V10:.*]] = llvm.insertelement %[[V9]], %[[V7]][%[[V1]] : i64] : vector<2xf64>
// CHECK-NEXT: func.return %[[V3]], %[[V10]] : f32, vector<2xf64>
func.func @libm(%x: f32, %v: vector<2xf64>) -> (f32, vector<2xf64>) {
  %0 = math.erf %x : f32
  %1 = math.erf %0 : f32
  %2 = math.erf %v : vector<2xf64>
  func.return %1, %2 : f32, vector<2xf64>
}

// -----

// CHECK-LABEL: func.func @absi(
// CHECK-SAME: %a: i32) -> i32 {
// CHECK-NEXT: %[[V0:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT: %[[V1:.*]] = llvm.sub %[[V0]], %a : i32
// CHECK-NEXT: %[[V2:.*]] = llvm.intr.smax(%a, %[[V1]]) : (i32, i32) -> i32
// CHECK-NEXT: func.return %[[V2]] : i32
func.func @absi(%a: i32) -> i32 {
  %0 = math.absi %a : i32
  func.return %0 : i32
}

// -----

// Arithmetic is not touched.
// CHECK-LABEL: func.func @other(
// CHECK-SAME: %a: f32) -> f32 {
// CHECK-NEXT: %[[V0:.*]] = arith.addf %a, %a : f32
// CHECK-NEXT: func.return %[[V0]] : f32
func.func @other(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  func.return %0 : f32
}

// -----

func.func @half(%x: f16) -> f16 {
  // expected-error @+1 {{math.erf: no function of libm for this type, expected f32 or f64, got f16}}
  %0 = math.erf %x : f16
  func.return %0 : f16
}

// -----

func.func @unknown(%a: i32) -> i32 {
  // expected-error @+1 {{math.ctpop: cannot be converted to the llvm dialect}}
  %0 = math.ctpop %a : i32
  func.return %0 : i32
}
