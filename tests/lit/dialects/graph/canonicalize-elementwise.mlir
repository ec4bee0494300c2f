// RUN: stepwell-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @add_negative_zero(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @add_negative_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<-0.0> : tensor<4xf32>
  %y = graph.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @negative_zero_add(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @negative_zero_add(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<-0.0> : tensor<4xf32>
  %y = graph.add %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @add_integer_zero(
// CHECK-NEXT: func.return %x : tensor<4xi64>
func.func @add_integer_zero(%x: tensor<4xi64>) -> tensor<4xi64> {
  %c = graph.constant dense<0> : tensor<4xi64>
  %y = graph.add %x, %c : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  func.return %y : tensor<4xi64>
}

// CHECK-LABEL: func.func @keep_add_positive_zero(
// CHECK-NEXT: %c = graph.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_add_positive_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0.0> : tensor<4xf32>
  %y = graph.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_add_that_broadcasts(
// CHECK-NEXT: %c = graph.constant dense<-0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.add %x, %c : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_add_that_broadcasts(%x: tensor<f32>) -> tensor<4xf32> {
  %c = graph.constant dense<-0.0> : tensor<4xf32>
  %y = graph.add %x, %c : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @sub_zero(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @sub_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0.0> : tensor<4xf32>
  %y = graph.sub %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_sub_negative_zero(
// CHECK-NEXT: %c = graph.constant dense<-0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.sub %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_sub_negative_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<-0.0> : tensor<4xf32>
  %y = graph.sub %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @mul_one(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @mul_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @one_mul(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @one_mul(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  %y = graph.mul %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_mul_zero(
// CHECK-NEXT: %c = graph.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_mul_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0.0> : tensor<4xf32>
  %y = graph.mul %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @div_one(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @div_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  %y = graph.div %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_one_div(
// CHECK-NEXT: %c = graph.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.div %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_one_div(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  %y = graph.div %c, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @max_of_same(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @max_of_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.max %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_max(
// CHECK-NEXT: %y = graph.max %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_max(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.max %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @min_of_same(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @min_of_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.min %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @pow_one(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @pow_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<4xf32>
  %y = graph.pow %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @pow_two(
// CHECK-NEXT: [[Y:%.+]] = graph.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<4xf32>
func.func @pow_two(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<2.0> : tensor<4xf32>
  %y = graph.pow %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_pow_two_that_broadcasts(
// CHECK-NEXT: %c = graph.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK-NEXT: %y = graph.pow %x, %c : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_pow_two_that_broadcasts(%x: tensor<f32>) -> tensor<4xf32> {
  %c = graph.constant dense<2.0> : tensor<4xf32>
  %y = graph.pow %x, %c : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @neg_twice(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @neg_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.neg %z : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @relu_twice(
// CHECK-NEXT: %z = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %z : tensor<4xf32>
func.func @relu_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.relu %z : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @clip_nothing(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @clip_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.clip %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_clip(
// CHECK-NEXT: %y = graph.clip %x minimum = 0.000000e+00 : f64 : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_clip(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.clip %x minimum = 0.0 : f64 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @cast_to_same(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @cast_to_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.cast %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @cast_wider_and_back(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @cast_wider_and_back(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.cast %x : (tensor<4xf32>) -> tensor<4xf64>
  %y = graph.cast %z : (tensor<4xf64>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_cast_narrower_and_back(
// CHECK-NEXT: %z = graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: %y = graph.cast %z : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_cast_narrower_and_back(%x: tensor<4xf32>) -> tensor<4xf32> {
  %z = graph.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %y = graph.cast %z : (tensor<4xf16>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @dropout(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @dropout(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.dropout %x ratio = 0.5 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @keep_dropout_that_says_a_size(
// CHECK-NEXT: %y = graph.dropout %x ratio = 5.000000e-01 : (tensor<?xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @keep_dropout_that_says_a_size(%x: tensor<?xf32>) -> tensor<4xf32> {
  %y = graph.dropout %x ratio = 0.5 : (tensor<?xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @bitcast_to_same(
// CHECK-NEXT: func.return %x : tensor<4xf32>
func.func @bitcast_to_same(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @bitcast_twice(
// CHECK-NEXT: %y = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xui32>
// CHECK-NEXT: func.return %y : tensor<4xui32>
func.func @bitcast_twice(%x: tensor<4xf32>) -> tensor<4xui32> {
  %i = graph.bitcast %x : (tensor<4xf32>) -> tensor<4xi32>
  %y = graph.bitcast %i : (tensor<4xi32>) -> tensor<4xui32>
  func.return %y : tensor<4xui32>
}

// CHECK-LABEL: func.func @keep_bitcast_through_truth(
// CHECK-NEXT: graph.bitcast
// CHECK-NEXT: graph.bitcast
func.func @keep_bitcast_through_truth(%x: tensor<4xi8>) -> tensor<4xui8> {
  %i = graph.bitcast %x : (tensor<4xi8>) -> tensor<4xi1>
  %y = graph.bitcast %i : (tensor<4xi1>) -> tensor<4xui8>
  func.return %y : tensor<4xui8>
}

// CHECK-LABEL: func.func @keep_sub_that_compares_sizes(
// CHECK: %y = graph.sub %x, %zero
// CHECK-NEXT: func.return %y : tensor<?xf32>
func.func @keep_sub_that_compares_sizes(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = graph.constant dense<0.0> : tensor<2xf32>
  %y = graph.sub %x, %zero : (tensor<?xf32>, tensor<2xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
