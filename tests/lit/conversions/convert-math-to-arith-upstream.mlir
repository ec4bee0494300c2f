// REQUIRES: mlir-opt
// RUN: stepwell-opt %s -p convert-math-to-arith | mlir-opt | filecheck %s

// Upstream reads the expansions, and finds no function that would become a call.
// CHECK-LABEL: func.func @lanes
// CHECK-NOT:     math.{{erf|exp|log|pow|rsqrt|tanh}}
// CHECK:         return
func.func @lanes(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %0 = math.erf %x : vector<16xf32>
  %1 = math.exp %0 : vector<16xf32>
  %2 = math.exp2 %1 : vector<16xf32>
  %3 = math.expm1 %2 : vector<16xf32>
  %4 = math.log %3 : vector<16xf32>
  %5 = math.log1p %4 : vector<16xf32>
  %6 = math.log2 %5 : vector<16xf32>
  %7 = math.powf %6, %y : vector<16xf32>
  %8 = math.rsqrt %7 : vector<16xf32>
  %9 = math.tanh %8 : vector<16xf32>
  %10 = math.sin %9 : vector<16xf32>
  func.return %10 : vector<16xf32>
}

// CHECK-LABEL: func.func @scalar
// CHECK-NOT:     math.{{erf|exp|log|pow|rsqrt|tanh}}
// CHECK:         return
func.func @scalar(%x: f32, %y: f32) -> f32 {
  %0 = math.erf %x : f32
  %1 = math.exp %0 : f32
  %2 = math.exp2 %1 : f32
  %3 = math.expm1 %2 : f32
  %4 = math.log %3 : f32
  %5 = math.log1p %4 : f32
  %6 = math.log2 %5 : f32
  %7 = math.powf %6, %y : f32
  %8 = math.rsqrt %7 : f32
  %9 = math.tanh %8 : f32
  func.return %9 : f32
}
