// RUN: stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.call_dps: the module has no kernel @nowhere}}
  %y = graph.call_dps @nowhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.call_packed: result_dims do not fit the results, expected [1] names}}
  %y = graph.call_packed "env.f"(%x) dims [["n", ""]] : (tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.call_packed: result_dims has a text that is not a size, expected a size, got "n/2"}}
  %y = graph.call_packed "env.f"(%x) dims [["n/2"]] : (tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xi7>) {
  // expected-error @+1 {{expected a tensor of f16, bf16, f32, f64, i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f6E2M3FN, f6E3M2FN, f4E2M1FN, i4, ui4, i2, ui2, got tensor<4xi7>}}
  %y = graph.call_packed "env.f"(%x) : (tensor<4xi7>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.call_packed: there is no result for size "k", expected below 1, got 1}}
  %y = graph.call_packed "env.f"(%x) dims [["k"]] sizes [#graph.size<"k" in result 1 at_most "4">] : (tensor<4xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{graph.call_packed: a size is not a scalar, expected tensor<i64>, got tensor<4xf32>}}
  %y = graph.call_packed "env.f"(%x) dims [["k"]] sizes [#graph.size<"k" in argument 0 at_most "4">] : (tensor<4xf32>) -> tensor<?xf32>
  func.return
}
