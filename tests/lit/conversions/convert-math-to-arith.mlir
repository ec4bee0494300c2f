// RUN: stepwell-opt %s -p convert-math-to-arith | filecheck %s
// RUN: stepwell-opt %s -p "convert-math-to-arith{target=x86-64-v4}" | filecheck %s --check-prefix=SCALE
// RUN: stepwell-opt %s -p "convert-math-to-arith{target=x86-64-v3}" | filecheck %s --check-prefix=HALVES
// RUN: stepwell-opt %s -p "convert-math-to-arith{target=x86-64}" | filecheck %s --check-prefix=UNFUSED
// RUN: stepwell-opt %s -p 'convert-math-to-arith{target="cuda:sm_90,emulated"}' | filecheck %s --check-prefix=DEVICE

// The range is clamped, n and r of x = n ln 2 + r are found, and a polynomial is scaled by the two
// halves of 2^n.
// CHECK-LABEL: func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
// CHECK:         [[low:%.*]] = arith.constant dense<-1.040000e+02> : vector<8xf32>
// CHECK-NEXT:    [[high:%.*]] = arith.constant dense<8.900000e+01> : vector<8xf32>
// CHECK-NEXT:    [[log2e:%.*]] = arith.constant dense<1.44269502> : vector<8xf32>
// CHECK-NEXT:    [[round:%.*]] = arith.constant dense<0x4B4000FE> : vector<8xf32>
// CHECK-NEXT:    [[ln2h:%.*]] = arith.constant
// CHECK-NEXT:    [[ln2l:%.*]] = arith.constant
// CHECK:         [[one:%.*]] = arith.constant dense<1.000000e+00> : vector<8xf32>
// CHECK-NEXT:    [[half:%.*]] = arith.constant dense<22> : vector<8xi32>
// CHECK-NEXT:    [[field:%.*]] = arith.constant dense<-8388608> : vector<8xi32>
// CHECK-NEXT:    [[whole:%.*]] = arith.constant dense<23> : vector<8xi32>
// CHECK-NEXT:    [[less:%.*]] = arith.minimumf %x, [[high]] : vector<8xf32>
// CHECK-NEXT:    [[z:%.*]] = arith.maximumf [[less]], [[low]] : vector<8xf32>
// CHECK-NEXT:    [[t:%.*]] = math.fma [[z]], [[log2e]], [[round]] : vector<8xf32>
// CHECK-NEXT:    [[n:%.*]] = arith.subf [[t]], [[round]] : vector<8xf32>
// CHECK-NEXT:    [[r0:%.*]] = math.fma [[n]], [[ln2h]], [[z]] : vector<8xf32>
// CHECK-NEXT:    [[r:%.*]] = math.fma [[n]], [[ln2l]], [[r0]] : vector<8xf32>
// CHECK-COUNT-5: math.fma {{%.*}}, [[r]], {{%.*}} : vector<8xf32>
// CHECK-NEXT:    [[p:%.*]] = math.fma {{%.*}}, [[r]], [[one]] : vector<8xf32>
// CHECK-NEXT:    [[bits:%.*]] = arith.bitcast [[t]] : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    [[s0:%.*]] = arith.shli [[bits]], [[half]] : vector<8xi32>
// CHECK-NEXT:    [[f:%.*]] = arith.andi [[s0]], [[field]] : vector<8xi32>
// CHECK-NEXT:    [[s1:%.*]] = arith.shli [[bits]], [[whole]] : vector<8xi32>
// CHECK-NEXT:    [[c:%.*]] = arith.subi [[s1]], [[f]] : vector<8xi32>
// CHECK-NEXT:    [[floor:%.*]] = arith.bitcast [[f]] : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    [[once:%.*]] = arith.mulf [[p]], [[floor]] : vector<8xf32>
// CHECK-NEXT:    [[ceil:%.*]] = arith.bitcast [[c]] : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %y = arith.mulf [[once]], [[ceil]] : vector<8xf32>
// CHECK-NEXT:    func.return %y
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// 2^n of an argument that is not above 64 is 2^-24, in the coefficients, times 2^(n + 24).
// CHECK-LABEL: func.func @exp_of_small
// CHECK:         [[round:%.*]] = arith.constant dense<0x4B400097> : vector<8xf32>
// CHECK:         [[one:%.*]] = arith.constant dense<5.96046448e-08> : vector<8xf32>
// CHECK-NOT:     arith.minimumf
// CHECK:         [[z:%.*]] = arith.maximumf %x, {{%.*}} : vector<8xf32>
// CHECK-NEXT:    [[t:%.*]] = math.fma [[z]], {{%.*}}, [[round]] : vector<8xf32>
// CHECK:         [[q:%.*]] = math.fma {{%.*}}, {{%.*}}, [[one]] : vector<8xf32>
// CHECK-NEXT:    [[p:%.*]] = math.fma [[q]], {{%.*}}, [[one]] : vector<8xf32>
// CHECK-NEXT:    [[bits:%.*]] = arith.bitcast [[t]] : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    [[s:%.*]] = arith.shli [[bits]], {{%.*}} : vector<8xi32>
// CHECK-NEXT:    [[f:%.*]] = arith.bitcast [[s]] : vector<8xi32> to vector<8xf32>
// CHECK-NEXT:    %y = arith.mulf [[p]], [[f]] : vector<8xf32>
// CHECK-NEXT:    func.return %y
func.func @exp_of_small(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x {stepwell.at_most_64} : vector<8xf32>
  func.return %y : vector<8xf32>
}

// AVX-512 multiplies 16 lanes by 2^n in one instruction.
// SCALE-LABEL: func.func @wide
// SCALE-DAG:     [[every:%.*]] = arith.constant -1 : i16
// SCALE-DAG:     [[nearest:%.*]] = arith.constant 4 : i32
// SCALE:         [[n:%.*]] = arith.subf
// SCALE-COUNT-8: math.fma
// SCALE-NEXT:    %y = x86vector.avx512.mask.scalef [[p:%.*]], [[p]], [[n]], [[every]], [[nearest]] : vector<16xf32>
// SCALE-NEXT:    func.return %y
// HALVES-LABEL: func.func @wide
// HALVES-COUNT-2: arith.shli
// HALVES-NOT:   x86vector
func.func @wide(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  func.return %y : vector<16xf32>
}

// Neighbours are expanded step by step; one that needs the other's result comes after it.
// CHECK-LABEL: func.func @neighbours(%a: f32, %b: f32)
// CHECK:         [[x:%.*]] = arith.minimumf %a, {{%.*}} : f32
// CHECK-NEXT:    [[y:%.*]] = arith.minimumf %b, {{%.*}} : f32
// CHECK-NEXT:    arith.maximumf [[x]], {{%.*}} : f32
// CHECK-NEXT:    arith.maximumf [[y]], {{%.*}} : f32
// CHECK:         %c = arith.mulf
// CHECK-NEXT:    %d = arith.mulf
// CHECK-NEXT:    arith.minimumf %d, {{%.*}} : f32
// CHECK-NEXT:    arith.maximumf
func.func @neighbours(%a: f32, %b: f32) -> (f32, f32) {
  %c = math.exp2 %a : f32
  %d = math.exp2 %b : f32
  %e = math.exp2 %d : f32
  func.return %c, %e : f32, f32
}

// A scalar has the same operations.
// CHECK-LABEL: func.func @log(%x: f32) -> f32 {
// CHECK:         [[zero:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         arith.cmpf olt, %x, {{%.*}} : f32
// CHECK:         arith.sitofp {{%.*}} : i32 to f32
// CHECK:         [[inside:%.*]] = arith.cmpf ugt, %x, [[zero]] : f32
// CHECK-NEXT:    %y = arith.select [[inside]], {{%.*}}, {{%.*}} : f32
// CHECK-NEXT:    func.return %y
func.func @log(%x: f32) -> f32 {
  %y = math.log %x : f32
  func.return %y : f32
}

// A comparison of vectors is a vector of i1, and select takes it.
// CHECK-LABEL: func.func @log_of_lanes
// CHECK:         [[inside:%.*]] = arith.cmpf ugt, %x, {{%.*}} : vector<4xf32>
// CHECK-NEXT:    %y = arith.select [[inside]], {{%.*}}, {{%.*}} : vector<4xi1>, vector<4xf32>
func.func @log_of_lanes(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.log %x : vector<4xf32>
  func.return %y : vector<4xf32>
}

// CHECK-LABEL: func.func @tanh
// CHECK:         [[t:%.*]] = math.absf %x : f32
// CHECK:         [[q:%.*]] = arith.divf {{%.*}}, {{%.*}} : f32
// CHECK-NEXT:    %y = math.copysign [[q]], %x : f32
func.func @tanh(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  func.return %y : f32
}

// Computed in f64 and rounded once.
// CHECK-LABEL: func.func @sinh
// CHECK:         [[wide:%.*]] = arith.extf %x : f32 to f64
// CHECK-NEXT:    [[size:%.*]] = math.absf [[wide]] : f64
// CHECK:         [[large:%.*]] = math.copysign {{%.*}}, [[wide]] : f64
// CHECK:         [[y:%.*]] = arith.select {{%.*}}, [[large]], {{%.*}} : f64
// CHECK-NEXT:    %y = arith.truncf [[y]] : f64 to f32
func.func @sinh(%x: f32) -> f32 {
  %y = math.sinh %x : f32
  func.return %y : f32
}

// CHECK-LABEL: func.func @acos_in_f64
// CHECK-NOT:     math.acos
// CHECK:         math.sqrt {{%.*}} : f64
// CHECK:         func.return
func.func @acos_in_f64(%x: f64) -> f64 {
  %y = math.acos %x : f64
  func.return %y : f64
}

// CHECK-LABEL: func.func @erf
// CHECK:         [[t:%.*]] = math.absf %x : f32
// CHECK-NOT:     arith.divf
// CHECK:         %y = math.copysign {{%.*}}, %x : f32
func.func @erf(%x: f32) -> f32 {
  %y = math.erf %x : f32
  func.return %y : f32
}

// CHECK-LABEL: func.func @others
// CHECK-NOT:     math.{{exp|log}}
// CHECK:         func.return
func.func @others(%x: f32) -> (f32, f32, f32, f32) {
  %0 = math.exp2 %x : f32
  %1 = math.expm1 %x : f32
  %2 = math.log2 %x : f32
  %3 = math.log1p %x : f32
  func.return %0, %1, %2, %3 : f32, f32, f32, f32
}

// The product with the logarithm is in f64, the exponential in f32.
// CHECK-LABEL: func.func @power
// CHECK:         arith.extf {{%.*}} : vector<8xf32> to vector<8xf64>
// CHECK:         arith.truncf {{%.*}} : vector<8xf64> to vector<8xf32>
// CHECK:         %z = arith.select {{%.*}}, {{%.*}}, {{%.*}} : vector<8xi1>, vector<8xf32>
func.func @power(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  %z = math.powf %x, %y : vector<8xf32>
  func.return %z : vector<8xf32>
}

// CHECK-LABEL: func.func @square
// CHECK:         %y = arith.mulf %x, %x : f64
func.func @square(%x: f64) -> f64 {
  %two = arith.constant 2.0 : f64
  %y = math.powf %x, %two : f64
  func.return %y : f64
}

// CHECK-LABEL: func.func @cube
// CHECK:         [[square:%.*]] = arith.mulf %x, %x : vector<4xf32>
// CHECK-NEXT:    %y = arith.mulf [[square]], %x : vector<4xf32>
func.func @cube(%x: vector<4xf32>) -> vector<4xf32> {
  %three = arith.constant 3.0 : f32
  %threes = vector.broadcast %three : f32 to vector<4xf32>
  %y = math.powf %x, %threes : vector<4xf32>
  func.return %y : vector<4xf32>
}

// CHECK-LABEL: func.func @root
// CHECK:         math.sqrt
// CHECK-NOT:     math.powf
func.func @root(%x: vector<4xf32>) -> vector<4xf32> {
  %half = arith.constant dense<0.5> : vector<4xf32>
  %y = math.powf %x, %half : vector<4xf32>
  func.return %y : vector<4xf32>
}

// What the roundings of the root and of the quotient lose is computed, and added unless it is NaN.
// CHECK-LABEL: func.func @rsqrt
// CHECK:         [[root:%.*]] = math.sqrt %x : f64
// CHECK-NEXT:    [[y:%.*]] = arith.divf [[one:%.*]], [[root]] : f64
// CHECK-NEXT:    [[minus:%.*]] = arith.negf [[root]] : f64
// CHECK-NEXT:    math.fma [[minus]], [[root]], %x : f64
// CHECK-NEXT:    math.fma [[minus]], [[y]], [[one]] : f64
// CHECK:         [[better:%.*]] = math.fma [[y]], {{%.*}}, [[y]] : f64
// CHECK-NEXT:    [[number:%.*]] = arith.cmpf oeq, [[better]], [[better]] : f64
// CHECK-NEXT:    arith.select [[number]], [[better]], [[y]] : f64

// UNFUSED-LABEL: func.func @rsqrt
// UNFUSED-NEXT:    [[one:%.*]] = arith.constant 1.000000e+00 : f64
// UNFUSED-NEXT:    [[root:%.*]] = math.sqrt %x : f64
// UNFUSED-NEXT:    %y = arith.divf [[one]], [[root]] : f64
func.func @rsqrt(%x: f64) -> f64 {
  %y = math.rsqrt %x : f64
  func.return %y : f64
}

// Constants stand once, at the entry, however many functions use them and wherever they are.
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    [[low:%.*]] = arith.constant -1.040000e+02 : f32
// CHECK-NOT:     arith.constant -1.040000e+02
// CHECK:         scf.for
// CHECK-NOT:     arith.constant
// CHECK:         arith.maximumf {{%.*}}, [[low]] : f32
// CHECK-NOT:     arith.constant
// CHECK:         arith.maximumf {{%.*}}, [[low]] : f32
// CHECK-NOT:     arith.constant
// CHECK:         scf.yield
func.func @shared(%x: f32, %n: index, %step: index) -> f32 {
  %y = scf.for %i = %step to %n step %step iter_args(%s = %x) -> (f32) {
    %a = math.exp %s : f32
    %b = math.exp %a : f32
    scf.yield %b : f32
  }
  func.return %y : f32
}

// The exponent of a power of two has 11 bits, in two halves; a NaN is clamped to itself.
// CHECK-LABEL: func.func @double
// CHECK:         [[x:%.*]] = arith.minimumf %x, {{%.*}} : vector<8xf64>
// CHECK:         arith.maximumf [[x]], {{%.*}} : vector<8xf64>
// CHECK:         [[bits:%.*]] = arith.bitcast {{%.*}} : vector<8xf64> to vector<8xi64>
// CHECK-NEXT:    arith.shli [[bits]], {{%.*}} : vector<8xi64>
// CHECK:         %e = arith.mulf
// CHECK-NOT:     math.exp
// CHECK:         arith.divf {{%.*}} : vector<8xf64>
// CHECK-NOT:     math.log
// CHECK:         math.copysign {{%.*}} : vector<8xf64>
// CHECK-NOT:     math.erf
func.func @double(%x: vector<8xf64>) -> vector<8xf64> {
  %e = math.exp %x : vector<8xf64>
  %l = math.log %e : vector<8xf64>
  %y = math.erf %l fastmath<afn> : vector<8xf64>
  func.return %y : vector<8xf64>
}

// CHECK-LABEL: func.func @others_of_doubles
// CHECK-NOT:     math.{{exp|log}}
// CHECK:         func.return
func.func @others_of_doubles(%x: f64) -> (f64, f64, f64, f64) {
  %0 = math.exp2 %x : f64
  %1 = math.expm1 %x : f64
  %2 = math.log2 %x : f64
  %3 = math.log1p %x : f64
  func.return %0, %1, %2, %3 : f64, f64, f64, f64
}

// A product is a number and what it lacks, which takes a fused operation.
// CHECK-LABEL: func.func @power_of_doubles
// CHECK:         [[z:%.*]] = arith.mulf [[s:%.*]], [[s]] : vector<8xf64>
// CHECK-NEXT:    [[minus:%.*]] = arith.negf [[z]] : vector<8xf64>
// CHECK-NEXT:    math.fma [[s]], [[s]], [[minus]] : vector<8xf64>
// CHECK-NOT:     math.powf
// CHECK:         func.return
// UNFUSED-LABEL: func.func @power_of_doubles
// UNFUSED-NEXT:  math.powf %x, %y : vector<8xf64>
func.func @power_of_doubles(%x: vector<8xf64>, %y: vector<8xf64>) -> vector<8xf64> {
  %z = math.powf %x, %y : vector<8xf64>
  func.return %z : vector<8xf64>
}

// Both ranges are computed, and a lane takes its own.
// CHECK-LABEL: func.func @arc
// CHECK:         [[size:%.*]] = math.absf %x : vector<8xf32>
// CHECK-NEXT:    [[large:%.*]] = arith.cmpf ogt, [[size]], {{%.*}} : vector<8xf32>
// CHECK:         [[root:%.*]] = math.sqrt {{%.*}} : vector<8xf32>
// CHECK-NEXT:    arith.select [[large]], [[root]], [[size]] : vector<8xi1>, vector<8xf32>
// CHECK:         %y = math.copysign {{%.*}}, %x : vector<8xf32>
func.func @arc(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.asin %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %0 = math.tan %x : f64
// CHECK-NEXT:    %1 = math.sin %0 : f64
// CHECK-NEXT:    %2 = math.sqrt %y : f32
// CHECK-NEXT:    %3 = math.floor %2 : f32
// CHECK-NEXT:    %4 = math.fma %3, %3, %y : f32
// CHECK-NEXT:    %5 = math.copysign %4, %y : f32
// CHECK-NEXT:    func.return %1, %5 : f64, f32
func.func @kept(%x: f64, %y: f32) -> (f64, f32) {
  %0 = math.tan %x : f64
  %1 = math.sin %0 : f64
  %2 = math.sqrt %y : f32
  %3 = math.floor %2 : f32
  %4 = math.fma %3, %3, %y : f32
  %5 = math.copysign %4, %y : f32
  func.return %1, %5 : f64, f32
}

// What is computed with bf16 is computed in f32 and rounded; what only moves stays.
// CHECK-LABEL: func.func @widened(
// CHECK-SAME:    [[x:%[^:]*]]: vector<4xbf16>, [[y:%[^:]*]]: vector<4xbf16>)
// CHECK-NEXT:    [[wx:%.*]] = arith.extf [[x]] : vector<4xbf16> to vector<4xf32>
// CHECK-NEXT:    [[wy:%.*]] = arith.extf [[y]] : vector<4xbf16> to vector<4xf32>
// CHECK-NEXT:    [[ws:%.*]] = arith.addf [[wx]], [[wy]] : vector<4xf32>
// CHECK-NEXT:    [[s:%.*]] = arith.truncf [[ws]] : vector<4xf32> to vector<4xbf16>
// CHECK-NEXT:    [[cs:%.*]] = arith.extf [[s]] : vector<4xbf16> to vector<4xf32>
// CHECK-NEXT:    [[c:%.*]] = arith.cmpf olt, [[cs]], [[cs]] : vector<4xf32>
// CHECK-NEXT:    [[r:%.*]] = arith.select [[c]], [[s]], [[x]] : vector<4xi1>, vector<4xbf16>
// CHECK-NEXT:    func.return [[r]]
func.func @widened(%x: vector<4xbf16>, %y: vector<4xbf16>) -> vector<4xbf16> {
  %s = arith.addf %x, %y : vector<4xbf16>
  %c = arith.cmpf olt, %s, %s : vector<4xbf16>
  %r = arith.select %c, %s, %x : vector<4xi1>, vector<4xbf16>
  func.return %r : vector<4xbf16>
}

// An f64 is rounded to 16 bits once: the f32 in between is odd where it is not exact.
// CHECK-LABEL: func.func @rounded_once(
// CHECK:         [[n:%.*]] = arith.truncf %x : f64 to f32
// CHECK-NEXT:    arith.bitcast [[n]] : f32 to i32
// CHECK:         arith.cmpf one
// CHECK:         [[odd:%.*]] = arith.bitcast {{%.*}} : i32 to f32
// CHECK-NEXT:    [[r:%.*]] = arith.truncf [[odd]] : f32 to bf16
// CHECK-NEXT:    func.return [[r]]
func.func @rounded_once(%x: f64) -> bf16 {
  %y = arith.truncf %x : f64 to bf16
  func.return %y : bf16
}

// Computed in f64: the rest by two parts of pi/2. From 2^20 on the C library is called, or a device
// multiplies by the bits of 2/pi.
// CHECK-LABEL:  func.func @circle(%x: f32) -> f32 {
// CHECK-NOT:      math.sin
// CHECK:          %[[NEAR:.*]] = arith.cmpf olt
// CHECK-NEXT:     scf.if %[[NEAR]] -> (f32) {
// CHECK-NEXT:       scf.yield
// CHECK-NEXT:     } else {
// CHECK-NEXT:       %[[WIDE:.*]] = arith.extf %x : f32 to f64
// CHECK-NEXT:       %[[FAR:.*]] = math.sin %[[WIDE]] : f64
// CHECK-NEXT:       %[[NARROW:.*]] = arith.truncf %[[FAR]] : f64 to f32
// CHECK-NEXT:       arith.select %[[NEAR]], %{{.*}}, %[[NARROW]] : f32
// DEVICE-LABEL: func.func @circle(%x: f32) -> f32 {
// DEVICE-NOT:     math.sin
// DEVICE:         arith.cmpf olt
// DEVICE-NEXT:    %[[WIDE:.*]] = arith.extf %{{.*}} : f32 to f64
// DEVICE-NEXT:    %[[N:.*]] = math.fma %[[WIDE]]
// DEVICE:         arith.muli %{{.*}}, %{{.*}} : i64
// DEVICE:         arith.truncf %{{.*}} : f64 to f32
func.func @circle(%x: f32) -> f32 {
  %y = math.sin %x : f32
  func.return %y : f32
}

// A vector takes the branch if one of its lanes needs it.
// CHECK-LABEL:  func.func @circles(%x: vector<8xf32>) -> vector<8xf32> {
// CHECK:          %[[NEAR:.*]] = arith.cmpf olt
// CHECK-NEXT:     %[[ALL:.*]] = vector.reduction <and>, %[[NEAR]] : vector<8xi1> into i1
// CHECK-NEXT:     scf.if %[[ALL]] -> (vector<8xf32>) {
func.func @circles(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.cos %x : vector<8xf32>
  func.return %y : vector<8xf32>
}

// There is no such question of several dimensions.
// CHECK-LABEL:  func.func @rows_of_circles
// CHECK-NEXT:     math.tan
func.func @rows_of_circles(%x: vector<2x8xf32>) -> vector<2x8xf32> {
  %y = math.tan %x : vector<2x8xf32>
  func.return %y : vector<2x8xf32>
}

// The rest is a number and what it lacks, by four parts of pi/2.
// CHECK-LABEL:  func.func @wide_circle(%x: f64) -> f64 {
// CHECK-NEXT:     math.sin
// DEVICE-LABEL: func.func @wide_circle(%x: f64) -> f64 {
// DEVICE-NOT:     math.sin
// DEVICE:         %[[NEAR:.*]] = arith.cmpf olt, %[[SIZE:.*]], %{{.*}} : f64
// DEVICE:         math.fma %[[SIZE]]
// DEVICE-COUNT-4: math.fma
// DEVICE:         arith.select %[[NEAR]]
// DEVICE-NOT:     arith.truncf
// DEVICE:         func.return
func.func @wide_circle(%x: f64) -> f64 {
  %y = math.sin %x : f64
  func.return %y : f64
}
